"""Batch scripts: text made fit for Slurm, and structured fields rendered as #SBATCH lines.

Slurm gets the fields themselves: the API reads no #SBATCH line. The lines are there so that the
same file run with plain sbatch gives the same job, and so that people can read what they asked for.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from gateway.core.durations import format_time_limit
from gateway.errors import Refused

MAX_SCRIPT_BYTES = 4 * 2**20  # slurmctld's own default (max_script_size)

_BOM = "\ufeff"
_ODD_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_ODD_SPACES = "\u00a0\u2007\u2009\u200a\u200b\u202f\u3000\ufeff"


class BadScript(Refused):
    """The text cannot run as a batch script. `code` is a message key with advice."""

    def __init__(self, code: str, **facts: str | int) -> None:
        super().__init__(code, field="script_text", **facts)


class BadDirective(Refused):
    """A value that may not stand in an #SBATCH line."""

    def __init__(self, name: str) -> None:
        super().__init__("directive_refused", field=name.replace("-", "_"), directive=name)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something changed, or worth a look. Line and column count from 1 in the text as given."""

    code: str
    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class Script:
    """The copy to submit, and what to tell its author. The author's own text stays as it is."""

    text: str
    notices: tuple[Notice, ...] = ()


def normalise_script(text: str) -> Script:
    """Make a pasted or uploaded script fit to submit; raises BadScript."""
    if not text.strip(_BOM + " \t\r\n"):
        raise BadScript("script_empty")
    notices: list[Notice] = []
    unix = text.replace("\r\n", "\n")
    if unix != text:
        notices.append(Notice("script_crlf", 1))
    _refuse_characters(unix)
    body = unix.lstrip(_BOM + " \t\n")
    skipped = unix[: len(unix) - len(body)]
    if not body.startswith("#!"):
        raise BadScript("script_no_shebang")
    if skipped.startswith(_BOM):
        notices.append(Notice("script_bom", 1))
    if skipped.strip(_BOM):
        notices.append(Notice("script_leading_blanks", 1))
    if len(body.encode()) > MAX_SCRIPT_BYTES:
        raise BadScript("script_too_long", bytes=MAX_SCRIPT_BYTES)
    notices += _odd_directives(body, skipped.count("\n"))
    return Script(body if body.endswith("\n") else body + "\n", tuple(notices))


def _refuse_characters(text: str) -> None:
    for character, code in (("\0", "script_nul"), ("\r", "script_lone_cr")):
        place = text.find(character)
        if place >= 0:
            raise BadScript(code, line=text.count("\n", 0, place) + 1)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise BadScript("script_not_unicode", line=line) from error


def _odd_directives(body: str, lines_skipped: int) -> list[Notice]:
    """A pasted long dash or no-break space makes sbatch pass over the option without a word."""
    found = []
    for number, line in enumerate(_directive_part(body), start=1 + lines_skipped):
        if not line.startswith("#SBATCH"):
            continue
        for column, character in enumerate(line.split(" #", 1)[0], start=1):
            if character in _ODD_DASHES:
                found.append(Notice("directive_odd_dash", number, column))
            elif character in _ODD_SPACES:
                found.append(Notice("directive_odd_space", number, column))
    return found


def _directive_part(body: str) -> list[str]:
    """The lines that sbatch searches: up to the first one that is neither comment nor blank."""
    lines = body.split("\n")
    for count, line in enumerate(lines):
        if line.strip() and not line.startswith("#"):
            return lines[:count]
    return lines


class JobFields(Protocol):
    """What a submit request holds, as far as directives need it."""

    @property
    def name(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def partition(self) -> str: ...
    @property
    def qos(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def gpus_per_node(self) -> int: ...
    @property
    def gpu_type(self) -> str | None: ...
    @property
    def cpus_per_task(self) -> int: ...
    @property
    def memory_mb_per_node(self) -> int | None: ...
    @property
    def time_limit_minutes(self) -> int: ...
    @property
    def working_directory(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def append_output(self) -> bool: ...
    @property
    def requeue(self) -> bool: ...
    @property
    def signal(self) -> str | None: ...
    @property
    def after_ok(self) -> int | None: ...
    @property
    def array(self) -> str | None: ...
    @property
    def on_nodes(self) -> str | None: ...


_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}"
_COUNT = r"[1-9][0-9]{0,8}"
_VALUES = {
    "job-name": _NAME,
    "account": _NAME,
    "partition": _NAME,
    "qos": _NAME,
    "array": r"[0-9]{1,9}(?:-[0-9]{1,9})?(?:%[1-9][0-9]{0,8})?",
    "nodes": _COUNT,
    "ntasks-per-node": _COUNT,
    "nodelist": r"[A-Za-z0-9][A-Za-z0-9_.,-]{0,3999}",
    "gpus-per-node": rf"(?:{_NAME}:)?{_COUNT}",
    "cpus-per-task": _COUNT,
    "mem": rf"{_COUNT}M",
    "time": r"[0-9]{1,5}-[0-9]{2}:[0-9]{2}:[0-9]{2}",
    "chdir": r"/[\w./+=@,:-]{0,4000}",
    "output": r"[\w./%+=@,:-]{1,4000}",
    "open-mode": r"append|truncate",
    "signal": r"(?:[BR]{1,2}:)?(?:[A-Z]{2,8}[0-9]?|[1-9][0-9]?)(?:@[0-9]{1,5})?",
    "dependency": r"afterok:[1-9][0-9]{0,9}",
}
_SWITCHES = frozenset({"requeue", "no-requeue"})


def directive(name: str, value: str | None = None) -> str:
    """One `#SBATCH` line, or BadDirective.

    Quoting is no cure: a newline inside quotes still ends the comment, and what follows would run
    as the person's shell code. So each option has its own alphabet.
    """
    if value is None:
        if name not in _SWITCHES:
            raise BadDirective(name)
        return f"#SBATCH --{name}"
    pattern = _VALUES.get(name)
    if pattern is None or not re.fullmatch(pattern, value):
        raise BadDirective(name)
    return f"#SBATCH --{name}={value}"


def lead_seconds(signal: str | None) -> int:
    """How long before its end the job is warned; 0: it is not."""
    return int(signal.rpartition("@")[2]) if signal and "@" in signal else 0


def valid_name(text: str) -> str | None:
    """The job name when it may be one, else None. Letters, digits and . _ - +, at most 64."""
    return text if re.fullmatch(_NAME, text) else None


def directives(spec: JobFields) -> tuple[str, ...]:
    """Every structured field as sbatch reads it; the token in the comment is the portal's own."""
    gpus = f"{spec.gpu_type}:{spec.gpus_per_node}" if spec.gpu_type else f"{spec.gpus_per_node}"
    lines = [
        directive("job-name", spec.name),
        directive("account", spec.account),
        directive("partition", spec.partition),
        directive("qos", spec.qos),
        None if spec.array is None else directive("array", spec.array),
        directive("nodes", str(spec.nodes)),
        directive("ntasks-per-node", "1"),
        None if spec.on_nodes is None else directive("nodelist", spec.on_nodes),
        directive("gpus-per-node", gpus) if spec.gpus_per_node else None,
        directive("cpus-per-task", str(spec.cpus_per_task)),
        None
        if spec.memory_mb_per_node is None
        else directive("mem", f"{spec.memory_mb_per_node}M"),
        directive("time", format_time_limit(spec.time_limit_minutes)),
        directive("chdir", spec.working_directory),
        directive("output", spec.output),
        directive("open-mode", "append" if spec.append_output else "truncate"),
        directive("requeue" if spec.requeue else "no-requeue"),
        None if spec.signal is None else directive("signal", spec.signal),
        None if spec.after_ok is None else _after(spec.after_ok),
    ]
    return tuple(line for line in lines if line is not None)


def after(script: str, job_id: int) -> str:
    """A rendered script with the line that lets it start only after `job_id` has ended well."""
    shebang, _, rest = script.partition("\n")
    lines = rest.split("\n")
    count = next(n for n, line in enumerate(lines) if not line.startswith("#SBATCH"))
    return "\n".join([shebang, *lines[:count], _after(job_id), *lines[count:]])


def _after(job_id: int) -> str:
    return directive("dependency", f"afterok:{job_id}")


@dataclass(frozen=True, slots=True)
class Directive:
    """An option found in a script's text. Display and warnings only: it changes no job."""

    line: int
    name: str
    value: str | None


def parse_directives(text: str) -> tuple[Directive, ...]:
    """What sbatch would read: long options up to the first command, quotes honoured."""
    found = []
    for number, line in enumerate(_directive_part(text), start=1):
        if line.startswith("#SBATCH"):
            found += [_option(number, word) for word in _words(line[7:]) if word.startswith("--")]
    return tuple(found)


def _option(line: int, word: str) -> Directive:
    name, equals, value = word.removeprefix("--").partition("=")
    return Directive(line, name, value if equals else None)


def _words(line: str) -> list[str]:
    words = re.findall(r"""(?:[^\s"'#]|(?<!\s)#|"[^"]*"|'[^']*')+|#.*""", line)
    return [re.sub(r"""["']""", "", word) for word in words if not word.startswith("#")]
