"""Cases 14 to 16 on every field of every template: refused, or one inert word.

Each rendered script really runs, under bash in a folder of its own with stand-ins for srun and
torchrun that write down the words they get: only bash itself knows what bash does with a text.
"""

import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.answers import BadValue, Value, clean
from gateway.core.sbatch import BadDirective
from gateway.services.environments import own_venv
from gateway.services.template_files import read_shared
from gateway.services.template_language import language
from gateway.services.templates import Catalogue, Template, render
from gateway.testing.template_samples import FOLDER, SPEC, values_for

TEMPLATES = {found.name: found for found in Catalogue.load((FOLDER,)).all()}
# What templates share is tried on one of them: it is read in the same lines of the same file.
SHARED = {f.name for f in read_shared((FOLDER,)).field_sets["run"]}
FIELDS = [
    (t.name, f.name)
    for t in TEMPLATES.values()
    for f in t.manifest.fields
    if t.name == "single-gpu" or f.name not in {*SHARED, "environment"}
]
HOSTILE = [
    "demo\n#SBATCH --account=richgroup\n#SBATCH --qos=urgent\nid > pwned",
    "demo\r#SBATCH --qos=urgent\rtouch pwned",
    "demo\r\ntouch pwned",
    "demo\u2028touch pwned",
    "demo\u2029touch pwned",
    "demo\u0085touch pwned",
    "demo\0touch pwned",
    "demo\x1b[2J",
    "x'; touch pwned; '",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "$(touch pwned)",
    "`touch pwned`",
    "${IFS}touch${IFS}pwned",
    "a; touch pwned",
    "a && touch pwned",
    "a | touch pwned",
    "> pwned",
    "*",
    "~root",
    "{a,b}",
    "\\",
    "\\'; touch pwned; '",
    "!!",
    "{{ setup }}",
    "{% include 'x' %}",
    "$'\\x27'; touch pwned",
    "a[$(touch pwned)]",
    "-x",
    "../../etc/passwd",
    "\u202egnp.exe",
    "x" * 100_000,
    "😀",
]

STUBS = {
    "srun": 'while [ "${1#--}" != "$1" ]; do shift; done\n'
    'printf "%s\\0" "$@" > "$RECORD/srun"\nif [ "${4-}" = torchrun ]; then exec "$@"; fi\n',
    "torchrun": 'printf "%s\\0" "$@" > "$RECORD/torchrun"\n',
    "scontrol": 'case $2 in hostnames) echo n1 ;; node) echo " NodeAddr=127.0.0.1 " ;; esac\n',
}


def run(script: str, tmp_path: Path) -> list[str]:
    """The words that reached the program; fails when anything else happened."""
    record, stubs, work = (tmp_path / name for name in ("record", "stubs", "work"))
    for folder in (record, stubs, work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for name, text in STUBS.items():
        (stubs / name).write_text(f"#!/bin/bash\n{text}")
        (stubs / name).chmod(0o755)
    environ = {
        "PATH": f"{stubs}:{os.environ['PATH']}",
        "RECORD": str(record),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": "demo",
        "HOME": str(work),
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_NNODES": "2",
        "SLURM_NODEID": "0",
        "SLURMD_NODENAME": "n1",
        "SLURM_CPUS_PER_TASK": "4",
    }
    done = subprocess.run(
        ["bash"], input=script, cwd=work, env=environ, capture_output=True, text=True, check=False
    )
    assert {path.name for path in work.iterdir()} <= {"sluice-runs"}, done.stderr
    assert "pwned" not in {path.name for path in tmp_path.rglob("*")}
    assert done.returncode == 0, done.stderr
    last = record / ("torchrun" if (record / "torchrun").exists() else "srun")
    return last.read_text().split("\0")[:-1]


def expected(template: Template, values: dict[str, Value]) -> list[str]:
    """What the program gets of the values: its name or script, its words, its row."""
    words: list[str] = []
    for name in ("command", "script", "arguments"):
        value = values.get(name, ())
        words += [str(word) for word in value] if isinstance(value, tuple) else [str(value)]
    array, rows = template.manifest.resources.array, values.get("table")
    return words + (list(rows[0]) if array and isinstance(rows, tuple) else [])


def holds(words: list[str], want: list[str]) -> bool:
    """Whether `want` stands in `words`, whole and in its order."""
    return any(words[at : at + len(want)] == want for at in range(len(words)))


def check_inert(template: Template, field: str, raw: str, tmp_path: Path) -> None:
    values = values_for(template)
    try:
        values[field] = clean(template.manifest.field(field), raw)
    except BadValue:
        return
    script = render(template, spec=SPEC, values=values, environment=None)
    want = expected(template, values)
    words = run(script, tmp_path)
    assert holds(words, want), words


@pytest.mark.parametrize("raw", HOSTILE)
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_hostile_value_is_refused_or_one_word(
    name: str, field: str, raw: str, tmp_path: Path
) -> None:
    check_inert(TEMPLATES[name], field, raw, tmp_path)


@pytest.mark.parametrize("word", [raw for raw in HOSTILE if len(raw) < 200 and raw != "-x"])
def test_a_hostile_cell_is_refused_or_one_word(word: str, tmp_path: Path) -> None:
    quoted = word.replace('"', '""')
    check_inert(TEMPLATES["sweep"], "table", f'lr,note\n0.1,"{quoted}"\n0.2,x\n', tmp_path)


@pytest.mark.parametrize("word", [raw for raw in HOSTILE if len(raw) < 200 and raw != "-x"])
def test_a_hostile_word_in_quotes_is_refused_or_one_word(word: str, tmp_path: Path) -> None:
    check_inert(TEMPLATES["command"], "command", f"echo {shlex.quote(word)}", tmp_path)
    check_inert(TEMPLATES["ddp"], "arguments", shlex.quote(word), tmp_path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=4))
def test_any_words_arrive_as_they_were_typed(tmp_path: Path, words: list[str]) -> None:
    """A start of bash a case: the proof needs a real shell."""
    check_inert(TEMPLATES["command"], "command", shlex.join(["echo", *words]), tmp_path)


@pytest.mark.parametrize("raw", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "a b"])
def test_a_value_that_no_field_has_cleaned_is_still_quoted(raw: str, tmp_path: Path) -> None:
    ddp = TEMPLATES["ddp"]
    values = {**values_for(ddp), "script": raw}
    script = render(ddp, spec=SPEC, values=values, environment=None)
    assert raw in run(script, tmp_path)


@pytest.mark.parametrize("raw", ["a\nid", "a\rid", "a\u2028id", "a\0", "a\ud800"])
def test_a_line_break_that_no_field_has_refused_stops_in_the_renderer(raw: str) -> None:
    ddp = TEMPLATES["ddp"]
    for value in (raw, ("--ok", raw)):
        with pytest.raises(BadValue):
            render(ddp, spec=SPEC, values={**values_for(ddp), "arguments": value}, environment=None)


@pytest.mark.parametrize("field", ["name", "account", "partition", "qos", "working_directory"])
@pytest.mark.parametrize("raw", HOSTILE[:16])
def test_a_hostile_directive_is_refused(field: str, raw: str) -> None:
    ddp = TEMPLATES["ddp"]
    with pytest.raises(BadDirective):
        render(ddp, spec=replace(SPEC, **{field: raw}), values=values_for(ddp), environment=None)


@pytest.mark.parametrize("raw", HOSTILE)
def test_a_hostile_environment_is_refused(raw: str) -> None:
    with pytest.raises(BadValue):
        own_venv(f"/{raw}" if raw not in {"-x", "../../etc/passwd"} else raw)


def test_the_template_language_reaches_nothing() -> None:
    sources = {
        "globals": "{{ range(3) }}",
        "class": "{{ x.__class__.__mro__ }}",
        "undefined": "{{ y }}",
        "object": "{{ z }}",
    }
    environment = language(sources)
    for name in sources:
        with pytest.raises(Exception, match=r"undefined|unsafe|cannot stand"):
            environment.get_template(name).render(x="a", z=object())
    assert language({"s": "{{ x|safe }}"}).get_template("s").render(x="a b") == "'a b'"
