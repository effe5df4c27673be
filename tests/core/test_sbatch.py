"""Cases 14 to 16: script text, directive lines, names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.sbatch import (
    BadDirective,
    BadScript,
    Notice,
    directive,
    directives,
    normalise_script,
    parse_directives,
    valid_name,
)
from gateway.testing.template_samples import SPEC

GOOD = "#!/bin/bash\n#SBATCH --nodes=1\nhostname\n"


def test_a_good_script_is_left_alone() -> None:
    script = normalise_script(GOOD)
    assert (script.text, script.notices) == (GOOD, ())


def test_windows_line_ends_are_converted_with_a_notice() -> None:
    script = normalise_script(GOOD.replace("\n", "\r\n"))
    assert script.text == GOOD
    assert script.notices == (Notice("script_crlf", 1),)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("\ufeff" + GOOD, "script_bom"),
        (" " + GOOD, "script_leading_blanks"),
        ("\n\n" + GOOD, "script_leading_blanks"),
    ],
)
def test_what_hides_the_shebang_is_removed_with_a_notice(text: str, code: str) -> None:
    script = normalise_script(text)
    assert script.text == GOOD
    assert [n.code for n in script.notices] == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "script_empty"),
        (" \n\t\r\n", "script_empty"),
        ("\ufeff \n", "script_empty"),
        ("hostname\n", "script_no_shebang"),
        ("# comment\n#!/bin/bash\n", "script_no_shebang"),
        ("#!/bin/bash\rhostname\r", "script_lone_cr"),
        ("#!/bin/bash\nid\0\n", "script_nul"),
        ("#!/bin/bash\n\ud800\n", "script_not_unicode"),
        ("#!/bin/bash\n" + "x" * (5 * 2**20), "script_too_long"),
    ],
)
def test_what_cannot_run_is_refused_with_advice(text: str, code: str) -> None:
    with pytest.raises(BadScript) as refused:
        normalise_script(text)
    assert refused.value.code == code


def test_the_refusal_names_the_line() -> None:
    with pytest.raises(BadScript) as refused:
        normalise_script("#!/bin/bash\nid\nx\0\n")
    assert refused.value.facts == {"line": 3}


def test_a_long_dash_in_a_directive_is_reported_with_line_and_column() -> None:
    script = normalise_script("\n#!/bin/bash\n#SBATCH –nodes=2\n#SBATCH\u00a0--qos=x\necho –n\n")
    assert [n for n in script.notices if n.code.startswith("directive")] == [
        Notice("directive_odd_dash", 3, 9),
        Notice("directive_odd_space", 4, 8),
    ]


def test_a_missing_last_line_end_is_added() -> None:
    assert normalise_script("#!/bin/sh\nid").text == "#!/bin/sh\nid\n"


def test_every_field_becomes_a_line() -> None:
    assert directives(replace(SPEC, memory_mb_per_node=4096)) == (
        "#SBATCH --job-name=demo",
        "#SBATCH --account=nlp",
        "#SBATCH --partition=a100",
        "#SBATCH --qos=normal",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=a100:2",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=4096M",
        "#SBATCH --time=0-01:30:00",
        "#SBATCH --chdir=/home/member/runs",
        "#SBATCH --output=/home/member/runs/%x-%j.out",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:USR1@120",
    )


def test_what_is_not_asked_for_has_no_line() -> None:
    lines = directives(
        replace(SPEC, gpus_per_node=0, requeue=False, append_output=False, signal=None)
    )
    text = "\n".join(lines)
    assert "gpus" not in text
    assert "--mem" not in text
    assert "signal" not in text
    assert "#SBATCH --no-requeue" in lines
    assert "#SBATCH --open-mode=truncate" in lines


def test_without_a_type_the_count_stands_alone() -> None:
    assert "#SBATCH --gpus-per-node=2" in directives(replace(SPEC, gpu_type=None))


HOSTILE = [
    "demo\n#SBATCH --account=richgroup\n#SBATCH --qos=urgent\nid > out",
    "demo\rid",
    "demo\u2028id",
    "demo\0",
    "x'; touch pwned; '",
    "$(id)",
    "`id`",
    "a b",
    "-x",
    "",
    "x" * 300,
    "demo\n",
    "😀",
    "a|b",
    "../x",
]


@pytest.mark.parametrize("field", ["name", "account", "partition", "qos", "gpu_type"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_name_makes_no_directive(field: str, value: str) -> None:
    if (field, value) == ("gpu_type", ""):
        return  # no type
    with pytest.raises(BadDirective):
        directives(replace(SPEC, **{field: value}))


@pytest.mark.parametrize("field", ["working_directory", "output", "signal"])
@pytest.mark.parametrize("value", [*HOSTILE[:8], ""])
def test_a_hostile_path_or_signal_makes_no_directive(field: str, value: str) -> None:
    with pytest.raises(BadDirective):
        directives(replace(SPEC, **{field: value}))


def test_a_folder_with_letters_of_other_scripts_may_be_used() -> None:
    assert directive("chdir", "/home/member/实验") == "#SBATCH --chdir=/home/member/实验"


def test_options_that_the_portal_does_not_set_are_refused() -> None:
    for name in ("comment", "wrap", "uid", "export", "exclude", "requeue=1"):
        with pytest.raises(BadDirective):
            directive(name, "x")
    with pytest.raises(BadDirective):
        directive("exclusive")


@given(st.sampled_from(["job-name", "chdir", "output", "signal", "qos"]), st.text())
def test_any_text_makes_one_line_or_is_refused(name: str, value: str) -> None:
    try:
        line = directive(name, value)
    except BadDirective:
        return
    assert line.splitlines() == [line]
    assert line == f"#SBATCH --{name}={value}"
    assert not set(line) & set("\"'`$\\;&|<>() \t") - {" "}


def test_names() -> None:
    assert valid_name("run-1_a.b+c") == "run-1_a.b+c"
    for text in HOSTILE:
        assert valid_name(text) is None
    assert valid_name("x" * 64) == "x" * 64
    assert valid_name("x" * 65) is None


def test_reading_directives_as_sbatch_does() -> None:
    text = (
        "#!/bin/bash\n"
        '#SBATCH --comment="a b" --requeue # note --qos=no\n'
        "#SBATCH --acctg-freq=task=60,energy=30\n"
        "##SBATCH --off=1\n"
        "\n"
        "hostname\n"
        "#SBATCH --late=1\n"
    )
    assert [(d.line, d.name, d.value) for d in parse_directives(text)] == [
        (2, "comment", "a b"),
        (2, "requeue", None),
        (3, "acctg-freq", "task=60,energy=30"),
    ]
    rendered = "#!/bin/bash\n" + "\n".join(directives(SPEC)) + "\nid\n"
    assert len(parse_directives(rendered)) == len(directives(SPEC))


def test_a_script_of_comments_alone_is_searched_to_its_end() -> None:
    assert [d.line for d in parse_directives("#!/bin/bash\n\n#SBATCH --qos=x")] == [3]
