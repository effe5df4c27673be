"""Messages about folders that are made for a person."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """A new folder of `user`'s with these files of text, by their paths in it (held to
    core.recipe_code). `path` may begin with `~`; folders above it are made, too."""

    user: str
    path: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class MadeFolder:
    """`path` is the real one."""

    path: str
