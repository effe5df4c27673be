"""The catalogue, the renderer and `sluice template check`."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from jinja2 import UndefinedError

from gateway.cli.template import template as command
from gateway.config import assets
from gateway.core.answers import clean_all
from gateway.core.sbatch import directives, normalise_script, parse_directives
from gateway.services.template_check import check
from gateway.services.templates import Catalogue, Template, render
from gateway.testing.template_samples import FOLDER, SPEC, values_for

MANIFEST = """name = "mine"
title = { en = "Mine", zh_Hans = "我的" }
summary = { en = "Mine", zh_Hans = "我的" }

[resources]
nodes = { min = 1, max = 2, default = 1 }
gpus = "none"

[[fields]]
name = "script"
kind = "path"
required = true
label = { en = "Script", zh_Hans = "脚本" }
help = { en = "A file", zh_Hans = "文件" }

[[fields]]
name = "fast"
kind = "bool"
label = { en = "Fast", zh_Hans = "快" }
help = { en = "Fast", zh_Hans = "快" }
"""
SCRIPT = """#!/bin/bash
# Mine.
{% if fast %}
export FAST=1
{% endif %}
srun python3 {{ script }}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder)
    return folder


def write(folder: Path, script: str = SCRIPT, manifest: str = MANIFEST) -> None:
    (folder / "script.sbatch.j2").write_text(script, encoding="utf-8")
    (folder / "manifest.toml").write_text(manifest, encoding="utf-8")


def codes(folder: Path) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in check(folder)]


def loaded(folder: Path) -> Template:
    found = Catalogue.load((folder.parent,)).get("mine")
    assert found is not None
    return found


def test_the_shipped_templates_are_clean() -> None:
    catalogue = Catalogue.load((FOLDER,))
    assert catalogue.problems == ()
    assert {"command", "ddp", "single-gpu"} <= {t.name for t in catalogue.all()}
    for found in catalogue.all():
        assert check(found.folder) == ()


def test_the_list_goes_from_the_plain_to_the_special_and_a_sites_own_come_after(
    mine: Path,
) -> None:
    names = [found.name for found in Catalogue.load((FOLDER, mine.parent)).all()]
    assert names == [
        "single-gpu",
        "ddp",
        "fsdp",
        "hf-fsdp",
        "deepspeed-zero3",
        "colossalai",
        "sweep",
        "command",
        "notebook",
        "vscode",
        "tensorboard",
        "mine",
    ]
    write(mine, manifest=MANIFEST.replace("\n", "\norder = 15\n", 1))
    names = [found.name for found in Catalogue.load((FOLDER, mine.parent)).all()]
    assert names[:3] == ["single-gpu", "mine", "ddp"]


def test_a_later_folder_hides_an_earlier_template(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "command", tmp_path / "command")
    catalogue = Catalogue.load((FOLDER, tmp_path, tmp_path / "missing"))
    found = catalogue.get("command")
    assert found is not None
    assert found.folder == tmp_path / "command"
    assert catalogue.get("nothing") is None


def test_a_broken_template_is_reported_and_the_rest_stays(mine: Path) -> None:
    write(mine, manifest="name = ")
    (mine.parent / "empty").mkdir()
    catalogue = Catalogue.load((FOLDER, mine.parent))
    assert catalogue.all() == Catalogue.load((FOLDER,)).all()
    assert {problem.path.parent.name for problem in catalogue.problems} == {"mine", "empty"}


SET = """[[fields]]
name = "hours"
kind = "hours"
default = 2
label = { en = "Hours", zh_Hans = "小时" }
help = { en = "Hours", zh_Hans = "小时" }
"""


def shared(mine: Path, text: str = SET, use: str = "echo {{ hours }}\n") -> None:
    (mine.parent / "_shared").mkdir(exist_ok=True)
    (mine.parent / "_shared" / "own.toml").write_text(text, encoding="utf-8")
    write(mine, SCRIPT + use, MANIFEST.replace("\n\n", '\nfield_sets = ["own"]\n\n', 1))


def test_a_sites_own_field_set_is_used_and_read_again(mine: Path) -> None:
    shared(mine)
    assert codes(mine) == []
    catalogue = Catalogue.load((FOLDER, mine.parent))
    found = catalogue.get("mine")
    assert found is not None
    values, _ = clean_all(found.manifest, {"script": "train.py"})
    assert "\necho 7200\n" in render(found, spec=SPEC, values=values, environment=None)
    shared(mine, SET.replace("default = 2", "default = 10"))
    again = catalogue.get("mine")
    assert again is not None
    assert again.manifest.field("hours").default == "10"


def test_a_broken_field_set_is_named_with_its_line(mine: Path) -> None:
    shared(mine, SET.replace('"hours"\nd', '"days"\nd'))
    assert codes(mine)[0] == ("manifest_value", 3)
    catalogue = Catalogue.load((mine.parent,))
    assert {problem.path.name for problem in catalogue.problems} == {"own.toml", "script.sbatch.j2"}


def test_a_field_of_a_set_that_no_line_reads_is_a_fault(mine: Path) -> None:
    shared(mine, use="")
    assert [code for code, _ in codes(mine)] == ["field_unused"]


APP = """
[sbatch]
requeue = false

[app]
start = ["program", "{socket}"]
listen = "socket"

[[fields]]"""


def test_an_application_that_no_line_starts_is_a_fault(mine: Path) -> None:
    one_node = MANIFEST.replace("nodes = { min = 1, max = 2, default = 1 }", "nodes = 1")
    manifest = one_node.replace("\n[[fields]]", APP, 1)
    write(mine, manifest=manifest)
    assert codes(mine) == [("app_unused", 12)]
    write(mine, SCRIPT + "run {{ app_options }} -- {{ app_start }}\n", manifest)
    assert codes(mine) == []


@pytest.mark.parametrize(("signal", "lead"), [("B:USR1@300", 300), ("B:USR1", 0), (None, 0)])
def test_what_a_script_is_told_besides_the_answers(
    mine: Path, signal: str | None, lead: int
) -> None:
    told = "echo {{ lead }} {{ on_stall }} {{ kit }}\n{% if smoke %}\necho smoke\n{% endif %}\n"
    write(mine, SCRIPT + told)
    found = Catalogue.load((mine.parent,), kit="/shared/kit of all").get("mine")
    assert found is not None
    values, spec = {"script": "train.py", "fast": False}, replace(SPEC, signal=signal)
    text = render(found, spec=spec, values=values, environment=None)
    assert f"\necho {lead} nothing '/shared/kit of all'\n" in text
    assert "echo smoke" not in text
    trial = render(
        found, spec=spec, values=values, environment=None, on_stall="requeue", smoke=True
    )
    assert f"\necho {lead} requeue " in trial
    assert "\necho smoke\n" in trial


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(mine: Path) -> None:
    catalogue = Catalogue.load((mine.parent,))
    first = catalogue.get("mine")
    assert catalogue.get("mine") is first
    write(mine, SCRIPT.replace("Mine.", "Mine, changed."))
    os.utime(mine / "script.sbatch.j2", ns=(1, 1))
    second = catalogue.get("mine")
    assert second is not None
    assert "changed" in second.source
    shutil.rmtree(mine)
    assert catalogue.get("mine") is None


def test_directives_follow_the_shebang_and_equal_the_request() -> None:
    for found in Catalogue.load((FOLDER,)).all():
        text = render(found, spec=SPEC, values=values_for(found), environment=None)
        lines = directives(SPEC)
        assert text.split("\n")[: len(lines) + 1] == ["#!/bin/bash", *lines]
        assert len(parse_directives(text)) == len(lines)
        assert normalise_script(text).text == text
        assert normalise_script(text).notices == ()


def test_only_the_numbers_scale_the_job() -> None:
    ddp = Catalogue.load((FOLDER,)).get("ddp")
    assert ddp is not None
    values = values_for(ddp)
    one = render(ddp, spec=replace(SPEC, nodes=1), values=values, environment=None)
    four = render(
        ddp, spec=replace(SPEC, nodes=4), values=values, environment=None, nproc_per_node=8
    )
    differ = [(a, b) for a, b in zip(one.split("\n"), four.split("\n"), strict=True) if a != b]
    assert differ == [
        ("#SBATCH --nodes=1", "#SBATCH --nodes=4"),
        ("export NPROC_PER_NODE=2", "export NPROC_PER_NODE=8"),
    ]


def test_a_value_that_is_not_given_is_an_error(mine: Path) -> None:
    with pytest.raises(UndefinedError):
        render(loaded(mine), spec=SPEC, values={"fast": True}, environment=None)


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("srun", "#SBATCH --qos=urgent\nsrun", "directive_after_command", 6),
        ("# Mine.", "#SBATCH --qos=urgent", "directive_literal", 2),
        ("{{ script }}", "{{ scrip }}", "undefined_variable", 6),
        ("{{ script }}", '"{{ script }}"', "unsafe_value", 6),
        ("{{ script }}", "'{{ script }}'", "unsafe_value", 6),
        ("# Mine.", "# {{ script }}", "unsafe_value", 2),
        ("srun python3 {{ script }}", "cat <<EOF\n{{ script }}\nEOF", "unsafe_value", 7),
        ("srun python3 {{ script }}", "echo `cat {{ script }}`", "unsafe_value", 6),
        ("srun python3 {{ script }}", "bash -c {{ script }}", "unsafe_value", 6),
        ("srun python3 {{ script }}", "eval {{ script }}", "unsafe_value", 6),
        ("{{ script }}", "{{ script | replace('a', 'b') }}", "template_construct", 6),
        ("{{ script }}", "{{ script ~ 'x' }}", "template_expression", 6),
        ("# Mine.", "{% set x = 1 %}", "template_construct", 2),
        ("# Mine.", "{% filter upper %}x{% endfilter %}", "template_construct", 2),
        ("# Mine.", "{{ setup }} # x", "unsafe_value", 2),
        ("# Mine.", "{% include 'other.j2' %}", "include_missing", 2),
        ("{% endif %}", "", "template_syntax", 6),
        ("#!/bin/bash", "echo", "shebang_missing", 1),
        ("srun", "echo 'a\nsrun", "shell_unclosed", 6),
        ("srun", "if true; srun", "shell_syntax", 6),
        ("# Mine.", "x=(1\n", "shell_unclosed", 2),
        ("export FAST=1", "FAST=1", "shellcheck", 4),
    ],
)
def test_check_names_the_line(mine: Path, old: str, new: str, code: str, line: int) -> None:
    if code == "shellcheck" and not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    write(mine, SCRIPT.replace(old, new, 1))
    assert (code, line) in codes(mine)


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ('gpus = "none"', 'gpu = "none"', "manifest_unknown_key", 7),
        ('name = "mine"', 'name = "yours"', "manifest_folder", 1),
        ('name = "fast"', 'name = "quick"', "undefined_variable", 3),
        ('name = "fast"', 'name = "quick"', "field_unused", 17),
        ('kind = "bool"', 'kind = "boolean"', "manifest_value", 18),
        ("[resources]", "[resources", "manifest_syntax", 5),
    ],
)
def test_check_reads_the_manifest(mine: Path, old: str, new: str, code: str, line: int) -> None:
    write(mine, manifest=MANIFEST.replace(old, new, 1))
    assert (code, line) in codes(mine)


FIELD = """
[[fields]]
name = "more"
kind = "{kind}"
label = {{ en = "More", zh_Hans = "更多" }}
help = {{ en = "More", zh_Hans = "更多" }}
{facts}
"""


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("text", "max = 2\nrequired = true"),
        ("text", 'pattern = "[a-c]+"'),
        ("text", 'pattern = "[a-c]+"\ndefault = "abc"'),
        ("integer", "min = 3\nrequired = true"),
        ("integer", "default = 4"),
        ("arguments", ""),
        (
            "choice",
            'choices = [{ value = "x y", label = { en = "X", zh_Hans = "X" } }]',
        ),
    ],
)
def test_samples_of_every_kind_of_field_can_be_rendered(mine: Path, kind: str, facts: str) -> None:
    script = SCRIPT.replace("{{ script }}", "{{ script }} {{ more }}")
    write(mine, script, MANIFEST + FIELD.format(kind=kind, facts=facts))
    assert codes(mine) == []


def test_a_number_that_may_be_left_empty_is_printed_only_when_it_is_there(mine: Path) -> None:
    manifest = MANIFEST + FIELD.format(kind="integer", facts="")
    write(mine, SCRIPT.replace("{{ script }}", "{{ script }} --more {{ more }}"), manifest)
    assert codes(mine) == [("value_empty", 6)]
    guarded = "{{ script }} {% if more %}--more {{ more }}{% endif %}"
    write(mine, SCRIPT.replace("{{ script }}", guarded), manifest)
    assert codes(mine) == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("# Mine.", "# \ue000", "template_character"),
        ("# Mine.", "# {% if fast %}x{% endif %}", "unsafe_block"),
        ("# Mine.", "{% include script %}", "template_construct"),
    ],
)
def test_what_could_mislead_the_check_is_refused(mine: Path, old: str, new: str, code: str) -> None:
    write(mine, SCRIPT.replace(old, new, 1))
    assert code in {found for found, _ in codes(mine)}


def test_without_bash_and_shellcheck_the_rest_is_still_checked(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    write(mine, SCRIPT.replace("srun", "#SBATCH --qos=x\nsrun"))
    assert ("directive_after_command", 6) in codes(mine)
    write(mine, SCRIPT)
    assert codes(mine) == []


def test_a_folder_that_is_no_template_is_no_crash(tmp_path: Path) -> None:
    assert codes(tmp_path / "missing") == [("folder_missing", 1)]
    assert {code for code, _ in codes(tmp_path)} == {"file_missing"}
    (tmp_path / "script.sbatch.j2").write_bytes(b"\xff\xfe")
    assert {code for code, _ in codes(tmp_path)} == {"file_missing", "file_unreadable"}


def test_the_command_line_prints_file_and_line_and_fails(mine: Path) -> None:
    good = CliRunner().invoke(command, ["check", str(mine), str(FOLDER / "ddp")])
    assert (good.exit_code, good.output) == (0, "2 checked, nothing to complain about\n")
    write(mine, SCRIPT.replace("srun", "#SBATCH --qos=x\nsrun"))
    bad = CliRunner().invoke(command, ["check", str(mine)])
    assert bad.exit_code == 1
    assert f"{mine}/script.sbatch.j2:6: #SBATCH after the first command" in bad.output


def test_the_command_line_lists_them(tmp_path: Path, mine: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(mine, home / "sbatch_templates/mine")
    (home / "sbatch_templates/bad").mkdir()
    listed = CliRunner().invoke(command, ["list"], env={"SLUICE_HOME": str(home)})
    assert listed.exit_code == 0
    for name in ("ddp", "single-gpu", "command", "mine"):
        assert f"{name}\t" in listed.output
    assert "bad/manifest.toml:1:" in listed.stderr


def test_the_assets_are_found() -> None:
    assert (assets() / "sbatch_templates/_shared/prologue.sh.j2").is_file()
