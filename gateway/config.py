"""Settings: a frozen class per process, made from the environment and $SLUICE_HOME/sluice.toml.

Every problem is reported at once, so that nobody mends a file line by line.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from gateway.errors import BadConfiguration

# A submission is claimed for three minutes: both time-outs together must be well below that.
LONGEST_CALL_SECONDS = 60
GATE_MODES = ("off", "watch", "enforce")
NODE_KIT = "/opt/sluice/kit"
_NODE_PATH = re.compile(r"/[\w./+=@,-]+")


@dataclass(frozen=True, slots=True)
class Settings:
    """What web, worker and the command line need. Paths are absolute."""

    home: Path
    database_url: str
    broker_socket: Path
    cluster_name: str
    timezone: ZoneInfo
    poll_seconds: float
    ingest_seconds: float
    ingest_days: float
    broker_timeout_seconds: float
    listen: str
    web_workers: int
    behind_tls: bool
    template_folders: tuple[Path, ...]
    environments_file: Path
    service_login: str  # as whom jobs of the portal itself run; empty: as nobody
    environment_check_days: float  # 0: only when somebody presses the button
    node_kit: str  # a path on the nodes, empty where they have none
    snapshot_area: str  # a folder that all nodes see, empty: in people's homes
    node_local: str  # a folder on each node's own disk; empty: TMPDIR there, else /tmp
    dataset_ahead: bool  # copy datasets to the nodes before jobs start there
    dataset_verify_days: float  # 0: only when somebody presses the button
    smoke_partition: str
    first_template: str
    site_name: str
    currency: str
    bill_suspended: bool
    gate: str
    policy_second_approval: bool
    contribution_hour: int  # of the site's zone
    app_extension_hours: float  # a running application may get so many more than it asked for
    waits_k: int  # fewer people than these are not told of by themselves


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the privileged process needs. `allowed_uids` are the callers it listens to."""

    socket: Path
    acts_log: Path
    allowed_uids: frozenset[int]
    min_uid: int
    kill_timeout_seconds: int
    workers: int
    max_body_bytes: int
    file_areas: tuple[Path, ...]
    cluster_name: str
    volumes: Path | None  # the file of areas; None: there are no volumes


def assets() -> Path:
    """The folder that holds templates/, sbatch_templates/ and migrations/.

    In a checkout they lie beside the package; an installed wheel puts them under share/sluice.
    """
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "sbatch_templates").is_dir():
        return checkout
    import sysconfig  # noqa: PLC0415  # only an installed wheel needs it

    return Path(sysconfig.get_path("data")) / "share" / "sluice"


def default_home(environ: Mapping[str, str]) -> Path:
    """$SLUICE_HOME, or ~/.sluice."""
    return Path(environ.get("SLUICE_HOME") or Path.home() / ".sluice").absolute()


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; raises BadConfiguration that lists all problems."""
    home = default_home(environ)
    reader = _Reader(environ, _file(home / "sluice.toml"))
    settings = Settings(
        home=home,
        database_url=reader.text("database_url", f"sqlite:///{home / 'sluice.db'}"),
        broker_socket=Path(reader.text("broker_socket", str(home / "run" / "broker.sock"))),
        cluster_name=reader.text("cluster_name", "cluster"),
        timezone=reader.zone("timezone", "UTC"),
        poll_seconds=reader.number("poll_seconds", 15.0, low=1, high=600),
        ingest_seconds=reader.number("ingest_seconds", 30.0, low=1, high=3600),
        ingest_days=reader.number("ingest_days", 1.0, low=0, high=3660),
        broker_timeout_seconds=reader.number(
            "broker_timeout_seconds", 25.0, low=1, high=LONGEST_CALL_SECONDS
        ),
        listen=reader.text("listen", "127.0.0.1:8000"),
        web_workers=int(reader.number("web_workers", 2, low=1, high=64)),
        behind_tls=reader.flag("behind_tls", default=False),
        template_folders=(assets() / "sbatch_templates", home / "sbatch_templates"),
        environments_file=Path(reader.text("environments_file", str(home / "environments.toml"))),
        service_login=reader.text("service_login", ""),
        environment_check_days=reader.number("environment_check_days", 30.0, low=0, high=3660),
        node_kit=reader.node_path("node_kit", NODE_KIT),
        snapshot_area=reader.node_path("snapshot_area", ""),
        node_local=reader.node_path("node_local", ""),
        dataset_ahead=reader.flag("dataset_ahead", default=True),
        dataset_verify_days=reader.number("dataset_verify_days", 30.0, low=0, high=3660),
        smoke_partition=reader.text("smoke_partition", "debug"),
        first_template=reader.text("first_template", "ddp"),
        site_name=reader.text("site_name", "Sluice"),
        currency=reader.text("currency", "CNY"),
        bill_suspended=reader.flag("bill_suspended", default=False),
        gate=reader.choice("gate", "enforce", GATE_MODES),
        policy_second_approval=reader.flag("policy_second_approval", default=False),
        contribution_hour=int(reader.number("contribution_hour", 3, low=0, high=23)),
        app_extension_hours=reader.number("app_extension_hours", 24.0, low=0, high=10_000),
        waits_k=int(reader.number("waits_k", 3, low=1, high=100)),
    )
    reader.finish()
    return settings


def load_broker_settings(environ: Mapping[str, str] = os.environ) -> BrokerSettings:
    """Read the broker's settings from the environment alone: it shares no file with the web."""
    reader = _Reader(environ, {})
    settings = BrokerSettings(
        socket=Path(reader.text("broker_socket", "/run/sluice/broker.sock")),
        acts_log=Path(reader.text("broker_acts_log", "/var/log/sluice/acts.log")),
        allowed_uids=reader.uids("broker_allowed_uids"),
        min_uid=int(reader.number("broker_min_uid", 1000, low=1, high=2**31)),
        kill_timeout_seconds=int(
            reader.number("broker_kill_timeout_seconds", 20, low=1, high=LONGEST_CALL_SECONDS)
        ),
        workers=int(reader.number("broker_workers", 3, low=1, high=64)),
        max_body_bytes=int(
            reader.number("broker_max_body_bytes", 8 * 2**20, low=2**16, high=2**30)
        ),
        file_areas=tuple(
            Path(p) for p in reader.text("broker_file_areas", "/home").split(":") if p
        ),
        cluster_name=reader.text("cluster_name", "cluster"),
        volumes=Path(named) if (named := reader.text("broker_volumes", "")) else None,
    )
    reader.finish()
    return settings


def _file(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfiguration(f"{path}: {error}") from error


class _Reader:
    """Environment first (SLUICE_NAME), then the file; collects problems instead of raising."""

    def __init__(self, environ: Mapping[str, str], file: Mapping[str, object]) -> None:
        self._environ = environ
        self._file = file
        self._problems: list[str] = []
        self._known: set[str] = set()

    def text(self, name: str, default: str) -> str:
        self._known.add(name)
        value = self._environ.get(f"SLUICE_{name.upper()}")
        return str(self._file.get(name, default)) if value is None else value

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        raw = self.text(name, str(default))
        try:
            value = float(raw)
        except ValueError:
            self._problems.append(f"{name}: {raw!r} is not a number")
            return default
        if not low <= value <= high:
            self._problems.append(f"{name}: {raw} is not between {low:g} and {high:g}")
            return default
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        raw = self.text(name, str(default)).lower()
        if raw not in {"true", "false", "1", "0", "yes", "no"}:
            self._problems.append(f"{name}: {raw!r} is neither true nor false")
        return raw in {"true", "1", "yes"}

    def choice(self, name: str, default: str, among: tuple[str, ...]) -> str:
        raw = self.text(name, default).lower()
        if raw not in among:
            self._problems.append(f"{name}: {raw!r} is none of {', '.join(among)}")
            return default
        return raw

    def node_path(self, name: str, default: str) -> str:
        raw = self.text(name, default)
        if raw and not _NODE_PATH.fullmatch(raw):
            self._problems.append(f"{name}: {raw!r} is no absolute path of plain characters")
        return raw

    def zone(self, name: str, default: str) -> ZoneInfo:
        raw = self.text(name, default)
        try:
            return ZoneInfo(raw)
        except (KeyError, ValueError, OSError):
            self._problems.append(f"{name}: {raw!r} is no time zone")
            return ZoneInfo("UTC")

    def uids(self, name: str) -> frozenset[int]:
        raw = self.text(name, "")
        try:
            uids = frozenset(int(part) for part in raw.split(",") if part.strip())
        except ValueError:
            uids = frozenset()
        if not uids:
            self._problems.append(f"{name}: list the uids that may call, such as 998")
        return uids

    def finish(self) -> None:
        self._problems += [f"{name}: unknown setting" for name in set(self._file) - self._known]
        if self._problems:
            raise BadConfiguration("; ".join(sorted(self._problems)))
