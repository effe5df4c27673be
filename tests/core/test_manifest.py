"""Manifests are read strictly; typed values become typed values, or a refusal with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.answers import BadValue, clean, clean_all
from gateway.core.manifest import (
    Activity,
    App,
    ArrayRule,
    Choice,
    Field,
    FieldKind,
    GpuRule,
    Listen,
    Section,
    Text,
)
from gateway.core.manifest_file import BadManifest, parse_field_set, parse_manifest

TEXT = Text("en", "zh")
GOOD = """name = "demo"
title = { en = "Demo", zh_Hans = "演示" }
summary = { en = "A demo", zh_Hans = "演示" }

[resources]
nodes = { min = 1, max = 4, default = 1 }
nproc_per_node = 2
gpus = "chosen"
gpus_per_node = { min = 0, max = 8, default = 0 }
cpus_per_process = 3

[sbatch]
signal = "B:USR1@60"
requeue = false

[[fields]]
name = "script"
kind = "path"
required = true
label = { en = "Script", zh_Hans = "脚本" }
help = { en = "A file", zh_Hans = "文件" }

[[fields]]
name = "mode"
kind = "choice"
default = "fast"
label = { en = "Mode", zh_Hans = "模式" }
help = { en = "How", zh_Hans = "方式" }
choices = [
  { value = "fast", label = { en = "Fast", zh_Hans = "快" } },
  { value = "slow", label = { en = "Slow", zh_Hans = "慢" } },
]
"""


def field(kind: str, **more: object) -> Field:
    return Field("f", FieldKind(kind), TEXT, TEXT, **more)  # type: ignore[arg-type]


def test_a_good_manifest() -> None:
    manifest = parse_manifest(GOOD)
    assert manifest.name == "demo"
    assert manifest.title.get("zh_Hans_CN") == "演示"
    assert manifest.title.get("de") == "Demo"
    assert manifest.resources.gpus is GpuRule.CHOSEN
    assert manifest.resources.nproc_per_node.is_fixed
    assert manifest.resources.gpus_for(2, chosen=5) == 5
    assert manifest.resources.cpus_for(2) == 6
    assert manifest.sbatch.signal == "B:USR1@60"
    assert not manifest.sbatch.requeue
    assert manifest.field("mode").choices[1].value == "slow"


@pytest.mark.parametrize(
    ("old", "new", "line", "code"),
    [
        ('name = "demo"', 'name = "De mo"', 1, "manifest_value"),
        ('name = "demo"', "", None, "manifest_missing"),
        ('title = { en = "Demo", zh_Hans = "演示" }', 'title = "x"', 2, "manifest_languages"),
        ('zh_Hans = "演示" }\nsummary', 'de = "x" }\nsummary', 2, "manifest_languages"),
        ("cpus_per_process", "cpus_per_proces", 10, "manifest_unknown_key"),
        ("default = 1 }", "default = 9 }", 6, "manifest_range"),
        ("max = 4, ", "", 6, "manifest_range"),
        ('gpus = "chosen"', 'gpus = "all"', 8, "manifest_value"),
        ('signal = "B:USR1@60"', 'signal = "KILL; id"', 13, "manifest_value"),
        ("requeue = false", 'requeue = "no"', 14, "manifest_value"),
        ('kind = "path"', 'kind = "pth"', 18, "manifest_value"),
        ('kind = "path"', 'kind = "choice"', 18, "field_choices"),
        ("required = true", "required = true\nhint = 1", 20, "manifest_unknown_key"),
        ('default = "fast"', 'default = "other"', 26, "manifest_default"),
        ('name = "mode"', 'name = "script"', 17, "field_name_taken"),
        ('name = "mode"', 'name = "nodes"', 24, "field_name_taken"),
        ('name = "mode"', 'name = "Mode X"', 24, "manifest_value"),
        ("[sbatch]", "[sbatch", 12, "manifest_syntax"),
    ],
)
def test_a_fault_names_its_line(old: str, new: str, line: int | None, code: str) -> None:
    with pytest.raises(BadManifest) as bad:
        parse_manifest(GOOD.replace(old, new, 1))
    assert (line, code) in {(fault.line, fault.code) for fault in bad.value.faults}


def test_every_fault_is_listed_at_once() -> None:
    text = GOOD.replace('kind = "path"', 'kind = "x"').replace("requeue = false", "requeue = 1")
    with pytest.raises(BadManifest) as bad:
        parse_manifest(text)
    assert len(bad.value.faults) >= 2


@given(st.text())
def test_any_text_is_a_manifest_or_a_list_of_faults(text: str) -> None:
    with pytest.raises(BadManifest) as bad:
        parse_manifest(text)
    assert bad.value.faults


MODE = field("choice", choices=(Choice("a", TEXT), Choice("b", TEXT)))


SET = """[[fields]]
name = "hours"
section = "more"
kind = "hours"
default = 2
label = { en = "Hours", zh_Hans = "小时" }
help = { en = "Hours", zh_Hans = "小时" }
"""


def with_sets(names: str) -> str:
    return GOOD.replace('name = "demo"', f'name = "demo"\nfield_sets = {names}', 1)


def test_a_field_set_is_appended() -> None:
    hours = parse_field_set(SET)
    manifest = parse_manifest(with_sets('["run"]'), {"run": hours, "other": ()})
    assert [one.name for one in manifest.fields] == ["script", "mode", "hours"]
    assert manifest.field("hours").section is Section.MORE
    assert manifest.field("mode").section is Section.MAIN


@pytest.mark.parametrize(
    ("names", "code"),
    [('["gone"]', "field_set_missing"), ('"run"', "manifest_value")],
)
def test_a_field_set_that_is_not_there(names: str, code: str) -> None:
    with pytest.raises(BadManifest) as caught:
        parse_manifest(with_sets(names), {"run": parse_field_set(SET)})
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [(code, 2)]


def test_a_set_and_the_template_may_not_have_the_same_name() -> None:
    twice = parse_field_set(SET.replace('"hours"', '"mode"', 1))
    with pytest.raises(BadManifest, match="'mode' is taken"):
        parse_manifest(with_sets('["run"]'), {"run": twice})


def test_a_field_set_holds_fields_and_nothing_else() -> None:
    with pytest.raises(BadManifest, match="unknown key 'title'"):
        parse_field_set("title = 1\n" + SET)
    with pytest.raises(BadManifest) as caught:
        parse_field_set(SET.replace("more", "less"))
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [("manifest_value", 3)]


def test_what_is_left_out_has_its_default() -> None:
    manifest = parse_manifest(with_sets('["run"]'), {"run": parse_field_set(SET)})
    values, refused = clean_all(manifest, {})
    assert values == {"mode": "fast", "hours": 7200}
    assert [bad.field for bad in refused] == ["script"]


TABLE = field("table", max=3)
ARRAY = """
[[fields]]
name = "rows"
kind = "table"
required = true
label = { en = "Rows", zh_Hans = "行" }
help = { en = "Rows", zh_Hans = "行" }

[[fields]]
name = "at_once"
kind = "integer"
label = { en = "At once", zh_Hans = "同时" }
help = { en = "At once", zh_Hans = "同时" }
"""


def with_array(array: str) -> str:
    return GOOD.replace("cpus_per_process = 3", f"cpus_per_process = 3\narray = {array}") + ARRAY


@pytest.mark.parametrize(
    ("array", "rule"),
    [
        ('"rows"', ArrayRule("rows")),
        ('{ rows = "rows", at_once = "at_once" }', ArrayRule("rows", "at_once")),
    ],
)
def test_an_array_has_its_rows_from_a_table(array: str, rule: ArrayRule) -> None:
    assert parse_manifest(with_array(array)).resources.array == rule


@pytest.mark.parametrize(
    "array", ['"script"', '"gone"', "3", '{ rows = "rows", more = "x" }', '{ at_once = "at_once" }']
)
def test_an_array_of_something_else(array: str) -> None:
    with pytest.raises(BadManifest) as caught:
        parse_manifest(with_array(array))
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [("manifest_array", 11)]


def test_the_table_of_an_array_is_required() -> None:
    with pytest.raises(BadManifest, match="must be required"):
        parse_manifest(
            with_array('"rows"').replace(
                'required = true\nlabel = { en = "Rows', 'label = { en = "Rows'
            )
        )


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("", ()),
        ("lr,size\n0.1, 32\n\n0.2 ,64\n", (("--lr=0.1", "--size=32"), ("--lr=0.2", "--size=64"))),
        ("lr\tnote\r\n0.1\ta, b\r\n", (("--lr=0.1", "--note=a, b"),)),
        ('note\n"a, ""b"" $HOME"\n', (('--note=a, "b" $HOME',),)),
        ("a,b\n1,\n", (("--a=1", "--b="),)),
        ("a,b\r1,2\r3,4", (("--a=1", "--b=2"), ("--a=3", "--b=4"))),
        ("a\n-x\n实验\n", (("--a=-x",), ("--a=实验",))),
    ],
)
def test_a_table_is_a_row_of_words_a_line(raw: str, words: object) -> None:
    assert clean(TABLE, raw) == words


@pytest.mark.parametrize(
    ("raw", "code", "facts"),
    [
        ("a b\n1\n", "table_name", {"name": "a b"}),
        ("a,\n1,2\n", "table_name", {"name": ""}),
        ("-a\n1\n", "table_name", {"name": "-a"}),
        ("a,a\n1,2\n", "table_name_twice", {"name": "a"}),
        ("a,b\n", "table_no_rows", {}),
        ("a,b\n1,2\n3\n", "table_row", {"row": 2, "values": 1, "names": 2}),
        ("a\n1\n2\n3\n4\n", "table_too_many_rows", {"rows": 4, "max": 3}),
        ('a\n"1\n', "table_quotes", {}),
        ("a,b\n1,x\x1b[2J\n", "field_control_character", {"place": 2, "character": "U+001B"}),
        ('a,b\n"x\ny",1\n', "field_control_character", {"place": 2, "character": "U+000A"}),
        ('a,b\r\n"x\r\ny",1\r\n', "field_control_character", {"place": 2, "character": "U+000D"}),
        ("a\nx\u2028y\n", "field_control_character", {"place": 2, "character": "U+2028"}),
        ("a\nx\x0by\n", "field_control_character", {"place": 2, "character": "U+000B"}),
        ("a\n" + "x" * 5000, "field_too_long", {"max": 4096}),
        ("a\n" + "x\n" * 200_000, "field_too_long", {"max": 2**18}),
    ],
)
def test_a_table_that_cannot_be_read(raw: str, code: str, facts: dict[str, object]) -> None:
    with pytest.raises(BadValue) as caught:
        clean(TABLE, raw)
    assert (caught.value.code, caught.value.facts) == (code, facts)


def test_a_table_may_be_needed() -> None:
    with pytest.raises(BadValue, match="field_required"):
        clean(field("table", required=True), " \n")


@pytest.mark.parametrize(
    ("asked", "raw", "value"),
    [
        (field("path"), " train.py ", "train.py"),
        (field("hours"), "2", 7200),
        (field("hours"), " 0.5 ", 1800),
        (field("hours"), "0.0001", 0),
        (field("hours"), "", None),
        (field("hours", default="2"), "", 7200),
        (field("integer", default="3"), "", 3),
        (field("paths"), " /a/b  /c ", ("/a/b", "/c")),
        (field("paths"), "", ()),
        (field("path"), "/home/me/实验/a+b.py", "/home/me/实验/a+b.py"),
        (field("path"), "", ""),
        (field("arguments"), "--a 'x y' $(id) a;b", ("--a", "x y", "$(id)", "a;b")),
        (field("arguments"), "", ()),
        (field("arguments"), "''", ("",)),
        (field("command"), "nvidia-smi -L", ("nvidia-smi", "-L")),
        (field("integer", min=1, max=9), "7", 7),
        (field("integer"), "-3", -3),
        (field("integer"), "", None),
        (field("text"), "a b-c", "a b-c"),
        (field("text", pattern="[a-c]+"), "abc", "abc"),
        (MODE, "b", "b"),
        (field("bool"), "on", True),
        (field("bool"), True, True),
        (field("bool"), None, False),
        (field("environment"), "torch-2.13", "torch-2.13"),
        (field("environment"), None, ""),
    ],
)
def test_a_typed_value_is_taken(asked: Field, raw: str | bool | None, value: object) -> None:
    assert clean(asked, raw) == value


@pytest.mark.parametrize(
    ("asked", "raw", "code"),
    [
        (field("path", required=True), " ", "field_required"),
        (field("path"), "-x", "field_leading_dash"),
        (field("path"), "a/../../etc/passwd", "field_path_parent"),
        (field("path"), "~/x", "field_path_home"),
        (field("path"), "a b", "field_characters"),
        (field("path"), "a;b", "field_characters"),
        (field("path"), "a\nb", "field_control_character"),
        (field("arguments"), "it's", "field_quotes"),
        (field("arguments"), "a\u2028b", "field_control_character"),
        (field("arguments"), "a\0", "field_control_character"),
        (field("arguments"), "a\u202eb", "field_control_character"),
        (field("arguments"), "x" * 5000, "field_too_long"),
        (field("command"), "-x", "field_leading_dash"),
        (field("command"), "'' a", "field_no_program"),
        (field("command", required=True), "", "field_required"),
        (field("integer", min=1), "0", "field_too_small"),
        (field("integer", max=1), "2", "field_too_large"),
        (field("integer"), "1.5", "field_integer"),
        (field("hours"), "2h", "field_hours"),
        (field("hours"), "1e3", "field_hours"),
        (field("hours"), "-1", "field_hours"),
        (field("hours", max=168), "168.5", "field_too_large"),
        (field("hours", min=1), "0.5", "field_too_small"),
        (field("paths"), "/a b", "field_path_relative"),
        (field("paths"), "/a:/b", "field_characters"),
        (field("paths"), "/a,/b", "field_characters"),
        (field("paths"), "/a/../b", "field_path_parent"),
        (field("paths"), "~/data", "field_path_home"),
        (field("paths"), "/a/$HOME", "field_characters"),
        (field("integer"), "٣", "field_integer"),
        (field("text"), "a$b", "field_characters"),
        (field("text", pattern="[a-c]+"), "abd", "field_pattern"),
        (field("text", max=3), "abcd", "field_too_long"),
        (MODE, "c", "field_choice"),
        (field("bool"), "maybe", "field_flag"),
        (field("environment"), "../x", "field_characters"),
    ],
)
def test_a_refusal_says_why(asked: Field, raw: str | bool | None, code: str) -> None:
    with pytest.raises(BadValue) as bad:
        clean(asked, raw)
    assert (bad.value.code, bad.value.field) == (code, "f")


def test_all_refusals_come_at_once() -> None:
    values, refused = clean_all(parse_manifest(GOOD), {"script": "-x", "mode": "warp"})
    assert values == {}
    assert [bad.code for bad in refused] == ["field_leading_dash", "field_choice"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("requeue = false", "requeue = 1"),
        ("cpus_per_process = 3", "cpus_per_process = true"),
        ("cpus_per_process = 3", 'cpus_per_process = "3"'),
        ("cpus_per_process = 3", "cpus_per_process = 3\nmemory_mb = 0"),
        ("cpus_per_process = 3", 'cpus_per_process = 3\nmemory_mb = "2G"'),
        ("[sbatch]\n", "sbatch = 1\n[x]\n"),
        ('default = "fast"', "default = 1.5"),
        ('default = "fast"', 'pattern = "("'),
        ('  { value = "fast", label', '  "x",\n  { value = "fast", label'),
        ("max = 8, default = 0 }", "max = 8 }"),
        ("min = 0, max = 8", "min = 9, max = 8"),
        ('kind = "path"', 'kind = "path"\nchoices = 1'),
    ],
)
def test_a_value_of_another_type_is_a_fault_and_no_crash(old: str, new: str) -> None:
    assert old in GOOD
    with pytest.raises(BadManifest) as bad:
        parse_manifest(GOOD.replace(old, new, 1))
    assert all(fault.text for fault in bad.value.faults)


def test_memory_is_the_partitions_own_unless_it_is_named() -> None:
    assert parse_manifest(GOOD).resources.memory_mb is None
    text = GOOD.replace("cpus_per_process = 3", "cpus_per_process = 3\nmemory_mb = 2048")
    assert parse_manifest(text).resources.memory_mb == 2048


def test_a_default_that_is_true_or_a_number_is_read_as_typed() -> None:
    text = GOOD.replace('kind = "path"\nrequired = true', 'kind = "bool"\ndefault = true', 1)
    assert parse_manifest(text).field("script").default == "true"
    text = GOOD.replace('kind = "path"\nrequired = true', 'kind = "integer"\ndefault = 3', 1)
    assert parse_manifest(text).field("script").default == "3"


APP = """
[app]
start = ["program", "--socket={socket}", "--base={base}"]
listen = "socket"
ready = "api"
activity = "jupyter"
"""
ONE_NODE = GOOD.replace("nodes = { min = 1, max = 4, default = 1 }", "nodes = 1")


def test_an_application_is_a_template_with_a_table() -> None:
    app = parse_manifest(ONE_NODE + APP).app
    words = ("program", "--socket={socket}", "--base={base}")
    assert app == App(words, Listen.SOCKET, "api", Activity.JUPYTER, isolate=False)
    assert parse_manifest(ONE_NODE).app is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GOOD + APP, "manifest_app"),  # several nodes, one door
        (ONE_NODE.replace("requeue = false", "requeue = true") + APP, "manifest_app"),
        (ONE_NODE + APP.replace("{socket}", "{port}"), "manifest_app"),
        (ONE_NODE + APP.replace("{base}", "{port}"), "manifest_app"),
        (
            ONE_NODE + APP.replace('"program", "--socket={socket}", "--base={base}"', ""),
            "manifest_app",
        ),
        (ONE_NODE + APP + "isolate = true", "manifest_app"),
        (ONE_NODE + APP.replace('"api"', '"/api"'), "manifest_value"),
        (ONE_NODE + APP.replace('"api"', '"a/../b\\n"'), "manifest_value"),
        (ONE_NODE + APP.replace('"jupyter"', '"luck"'), "manifest_value"),
        (ONE_NODE + APP + 'shell = "yes"', "manifest_unknown_key"),
    ],
)
def test_an_application_that_cannot_work_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadManifest) as caught:
        parse_manifest(text)
    assert code in [fault.code for fault in caught.value.faults]
