"""What a training run tells of itself: its lines, and their sums. docs/engineering/training.md."""
