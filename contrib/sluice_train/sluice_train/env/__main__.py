"""`python3 -m sluice_train.env VERB …`: finds the verb and runs it."""

from __future__ import annotations

import sys
from importlib import import_module

from sluice_train.env.errors import Unusable

VERBS = ("enter", "save", "restore", "list", "check", "drop", "fingerprint")
_MODULES = {"list": "kept", "check": "kept", "drop": "kept", "fingerprint": "base"}


def main(argv: list[str]) -> int:
    """Run the verb that `argv` begins with; its exit code, 2 where there is none of that name."""
    if not argv or argv[0] not in VERBS:
        print(f"usage: python3 -m sluice_train.env {{{','.join(VERBS)}}} …", file=sys.stderr)
        return 2
    module = import_module(f"sluice_train.env.{_MODULES.get(argv[0], argv[0])}")
    try:
        return int(module.main(argv))
    except Unusable as error:
        print(error, file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
