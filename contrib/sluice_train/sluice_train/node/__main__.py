"""`python -m sluice_train.node VERB …`: finds the verb's module and runs it."""

from __future__ import annotations

import sys
from importlib import import_module

VERBS = ("prepare", "order", "watch", "tend", "finish")


def main(argv: list[str]) -> int:
    """Run the verb that `argv` begins with; 2 where there is none of that name."""
    if not argv or argv[0] not in VERBS:
        print(f"usage: python -m sluice_train.node {{{','.join(VERBS)}}} …", file=sys.stderr)
        return 2
    # Only the one asked for: `order` starts on every node and must not pay for the others.
    verb = import_module(f"sluice_train.node.{argv[0]}")
    return int(verb.main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
