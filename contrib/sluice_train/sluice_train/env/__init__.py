"""What people install above a read-only base: an overlay, saved as a snapshot, restored on nodes.

The formats are in docs/engineering/workbench.md and in `document`. Nothing here needs more than the
standard library, squashfs-tools and, where a site mounts snapshots, squashfuse.
"""
