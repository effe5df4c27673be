"""Where the cache and an instance's state lie, and where the checkout is."""

import os
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
GUEST = HERE / "guest"
OVERLAY = HERE / "overlay"
SITE_FILE = HERE / "site.toml"


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """$SLUICE_CACHE, or /var/cache/sluice for root and ~/.cache/sluice for others."""
    named = environ.get("SLUICE_CACHE")
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/sluice")
    return Path.home() / ".cache" / "sluice"


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """$SLUICE_HOME, or ~/.sluice: the same default as the gateway's own."""
    return Path(environ.get("SLUICE_HOME") or Path.home() / ".sluice").absolute()
