import ast
import re
from pathlib import Path

from gateway import config

DOCS = Path(config.__file__).resolve().parent.parent / "docs" / "admin.md"
KINDS = {"text", "number", "flag", "choice", "node_path", "zone", "uids"}


def names_in(function: str) -> set[str]:
    """The settings that a loader asks its reader for."""
    tree = ast.parse(Path(config.__file__).read_text())
    [loader] = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function]
    return {
        node.args[0].value
        for node in ast.walk(loader)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in KINDS
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def tables() -> list[set[str]]:
    text = DOCS.read_text().partition("## Settings")[2].partition("\n## ")[0]
    rows = re.split(r"^\| name \|.*$", text, flags=re.MULTILINE)[1:]
    return [set(re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE)) for part in rows]


def test_each_setting_is_in_the_administrator_guide_and_nothing_else_is() -> None:
    shared, brokers = tables()

    assert shared == names_in("load_settings")
    assert brokers | {"cluster_name"} == names_in("load_broker_settings")
