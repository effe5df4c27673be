"""Arrays in a file: written whole or not at all, and read as what anybody may have put there.

Never a pickle, which could run code.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.history import blocks

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

_MOST_BYTES = 2**28  # unpacked; ours are a fiftieth of it


def save(file: Path, arrays: "Mapping[str, Numbers]") -> None:
    """Readers have the old file until this one is whole, whatever happens to the machine. A kill
    leaves at most one file more, which the next one takes the place of."""
    import numpy as np  # noqa: PLC0415

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"new-{file.name}")
    np.savez_compressed(new, **arrays)  # type: ignore[arg-type]  # it takes names for its options
    blocks.to_disk(new)
    new.replace(file)


@contextmanager
def opened(file: Path) -> "Iterator[Mapping[str, Numbers]]":
    """The arrays by name. OSError where there is no file; ValueError for whatever is wrong with it,
    also with what the caller makes of it inside."""
    import numpy as np  # noqa: PLC0415

    try:
        # Opened here: NumPy leaves a broken archive open.
        with file.open("rb") as raw, np.load(raw, allow_pickle=False) as found:
            if sum(member.file_size for member in found.zip.infolist()) > _MOST_BYTES:
                raise ValueError("more than a forecast needs")
            yield found
    except (OSError, ValueError):
        raise
    except Exception as error:  # a broken archive fails in a dozen ways
        raise ValueError(f"{file.name} cannot be read: {error!r}") from error


def named(found: "Numbers") -> "Numbers":
    """The array as a list of names; ValueError where it is something else."""
    if found.ndim != 1 or found.dtype.kind != "U":
        raise ValueError("no list of names")
    return found
