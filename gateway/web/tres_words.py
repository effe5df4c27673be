"""Slurm's resources in words that stand after a number."""

from gateway.core.tres import GPU
from gateway.web.policy_texts import TRES_WORDS
from gateway.web.texts import gettext


def tres_word(tres: str) -> str:
    """GPUs, a100 GPUs, CPUs …; a resource of the site's own keeps Slurm's name."""
    if tres == GPU:
        return gettext("GPUs")
    if tres.startswith(f"{GPU}:"):
        return gettext("%(type)s GPUs", type=tres.removeprefix(f"{GPU}:"))
    return str(TRES_WORDS.get(tres, tres))
