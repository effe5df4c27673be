"""A quoted word put at a place stays one inert word, or the place is called unsafe."""

import pytest

from gateway.core.shellscan import BLOCK, VALUE, scan


def unsafe(script: str) -> list[str | None]:
    return [place.unsafe for place in scan(script.replace("@", VALUE).replace("%", BLOCK)).places]


@pytest.mark.parametrize(
    "script",
    [
        "python @",
        "python @ @",
        "X=@\n",
        "export X=@",
        "python --name=@ \\\n  @\n",
        "cat <<< @",
        "echo '$x' @ \"$y\"",
        "echo $(basename @)",
        'f() {\n  run @\n}\necho "${x:-\'}" @',
        "(cd @ && ls)",
        "a # it's a comment\nb @",
        "echo $# ${#x} x#y @",
        "cat <<EOF\nit's `\nEOF\nrun @",
        "cat <<-'EOF'\n\tit's\n\tEOF\nrun @",
        "[[ -n $x ]] && run @",
        "x=$((1 + (2 * 3))); run @",
        "if ((x > 1)); then run @; fi",
        "bash -c 'exec \"$@x\"' bash @".replace("$@x", "$1"),
        "printf '%s' x\n@",
        "case $x in\n  a) run @ ;;\nesac",
        'echo "a $(b \'c\' "d") e" @',
    ],
)
def test_a_word_of_its_own_is_safe(script: str) -> None:
    assert unsafe(script.replace("%", "p"))[-1] is None


@pytest.mark.parametrize(
    ("script", "where"),
    [
        ('echo "@"', "double quotes"),
        ("echo '@'", "single quotes"),
        ("echo $'@'", "$'…' quotes"),
        ("# @", "a comment"),
        ("run # @", "a comment"),
        ("echo `x @`", "backticks"),
        ("echo $((@ + 1))", "arithmetic"),
        ("((x = @))", "arithmetic"),
        ("echo ${x:-@}", "a ${…} expansion"),
        ("[[ @ -eq 1 ]]", "a [[ … ]] test"),
        ("cat <<EOF\n@\nEOF\n", "a here-document"),
        ("cat <<'EOF'\n@\nEOF\n", "a here-document"),
        ('echo "$(run @)"', "double quotes"),
        ("run \\@", "an escape: the backslash takes away the opening quote"),
        ("run $@", "$ and a quote, which bash reads as $'…'"),
        ("eval @", "a text that another program runs as code"),
        ("trap @ EXIT", "a text that another program runs as code"),
        ("let x=@", "a text that another program runs as code"),
        ("bash -c @", "a text that another program runs as code"),
        ("/bin/sh -lc @", "a text that another program runs as code"),
        ("python3 -c @", "a text that another program runs as code"),
        ("ssh host @", "a text that another program runs as code"),
    ],
)
def test_anywhere_else_is_unsafe(script: str, where: str) -> None:
    assert unsafe(script) == [where]


def test_a_statement_must_stand_outside_quotes() -> None:
    assert unsafe("%\nrun %--x @%\n") == [None, None, None, None]
    assert unsafe('echo "%"') == ["double quotes"]
    assert unsafe("# %") == ["a comment"]


def test_a_quote_that_never_ends_is_found() -> None:
    assert scan("echo 'a").unclosed == (5, "single quotes")
    assert scan("echo $(a").unclosed == (5, "$(")
    assert scan("echo a").unclosed is None
    assert scan("echo # it's").unclosed is None
