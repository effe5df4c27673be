"""The machine's pip settings as a chroot must see them: an environment and bind mounts.

The settings are handed over at run time and never stored: neither the checkout nor the cached
trees learn any index's address.
"""

import configparser
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PASSED = re.compile(r"(?i)PIP_.*|(https?|all|no|ftp)_proxy|SSL_CERT_(FILE|DIR)")
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
RESOLVER = Path("/etc/resolv.conf")


@dataclass(frozen=True, slots=True)
class PipView:
    """What a command in a chroot gets, so that pip there works as pip here does."""

    env: dict[str, str]
    binds: tuple[Path, ...]  # each at its own path


def of_machine(environ: Mapping[str, str] = os.environ) -> PipView:
    env = {_variable(key): value for key, value in _settings(config_files(environ)).items()}
    for name, value in environ.items():
        if PASSED.fullmatch(name) or name in CA_VARIABLES:
            env[name] = value
    env["PIP_CONFIG_FILE"] = os.devnull  # all of it is in the environment already
    env["PIP_NO_CACHE_DIR"] = "1"  # or a copy of each download would stay in the cached tree
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["PIP_ROOT_USER_ACTION"] = "ignore"
    return PipView(env, tuple(_outermost(_paths(env.values()))))


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """pip's own order: global, user, the file named by the environment; later ones win."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or "/root")
    xdg = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    candidates = [Path(folder) / "pip" / "pip.conf" for folder in xdg.split(":")]
    candidates += [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user / "pip" / "pip.conf"]
    if named:
        candidates.append(Path(named))
    return [path for path in candidates if path.is_file()]


def _settings(files: Iterable[Path]) -> dict[str, str]:
    merged: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in files:
        parser = configparser.RawConfigParser()
        parser.read(path)
        for section, settings in merged.items():
            if parser.has_section(section):
                settings.update(parser.items(section))
    return {**merged["global"], **merged["install"]}


def _variable(key: str) -> str:
    return "PIP_" + key.upper().replace("-", "_")


def _paths(values: Iterable[str]) -> Iterable[Path]:
    yield from (path for path in (CA_BUNDLE, RESOLVER) if path.exists())
    for word in (word for value in values for word in value.split()):
        local = word.startswith("file://")
        path = Path(word.removeprefix("file://"))
        if not path.is_absolute() or not path.exists() or path.is_relative_to("/dev"):
            continue
        # the pages of a simple index link to files beside the index, not below it
        beside = local and path.is_dir() and path.parent != Path("/")
        yield path.parent if beside else path


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Each path once, and none that lies below another."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(outer) for outer in kept):
            kept.append(path)
    return kept
