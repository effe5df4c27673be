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
