"""The arrays that statistics read, on disk: what is left over there."""

import os
import time

from gateway.history import blocks
from gateway.history.stats import part_files


def test_what_a_killed_process_left_half_written_is_swept_after_a_while(tmp_path):
    old, new = tmp_path / "a.part", tmp_path / "b.part"
    old.touch()
    new.touch()
    long_ago = time.time() - blocks.KEPT_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    part_files.make([], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["b.part"]


def test_a_part_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """After the power went, its head and its length may be right, and its figures zeros."""
    seen = []
    monkeypatch.setattr(blocks, "to_disk", lambda place: seen.append(place.suffix))
    place = tmp_path / "a.columns"
    assert part_files._keep(place, [1], [])
    assert (seen, place.exists()) == ([".part"], True)
