"""The cluster's PyTorch without the cluster: runs its Python in the root file system.

    python -m contrib.devcluster.intorch SCRIPT ARGUMENTS...

For tests that only compute. The checkout and the machine's folder for temporary files are there
under their own paths; root is needed, as for the cluster.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from contrib.devcluster import paths, rootfs, torchenv, trees

ROOT = Path(__file__).resolve().parents[2]


def main(argv: list[str]) -> NoReturn:
    """Becomes the program, or exits with a sentence where there is no PyTorch in the cache."""
    cache = paths.cache_folder()
    environment = torchenv.location(cache)
    if not environment.is_dir():
        sys.exit("no PyTorch in the cache: sluice cluster torch --frameworks")
    root = rootfs.ensure(cache, _tell)
    temporary = Path(tempfile.gettempdir())
    binds = [(environment, Path(torchenv.PLACE)), (ROOT, ROOT), (temporary, temporary)]
    words = trees.inside(root, [f"{torchenv.PLACE}/bin/python", *argv], binds=binds)
    os.execvp(words[0], words)  # noqa: S606  # the words are ours


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
