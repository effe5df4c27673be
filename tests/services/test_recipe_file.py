"""Files of recipes that came from elsewhere, hostile ones among them."""

import json
from typing import Any

import pytest

from gateway.core import recipe_code
from gateway.core import recipes as core
from gateway.services.recipe_file import LARGEST, BadFile, read
from gateway.testing.recipe_samples import recipe
from gateway.wire import codec


def whole(**changes: Any) -> dict[str, Any]:
    document = codec.dump(recipe()) | changes
    return {
        "sluice_recipe": 1,
        "fingerprint": core.fingerprint(document),
        "recipe": document,
        "files": {},
    }


def text(value: object) -> bytes:
    return json.dumps(value).encode()


def test_what_was_exported_is_read_again() -> None:
    assert read(text(whole())).recipe == recipe()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "recipe_file_json"),
        (b"\xff\xfe", "recipe_file_json"),
        (b"[" * 100_000, "recipe_file_json"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "recipe_file_json"),
        (b'{"sluice_recipe": 1, "sluice_recipe": 2}', "recipe_file_json"),
        (b'{"sluice_recipe": NaN}', "recipe_file_json"),
        (b'{"sluice_recipe": ' + b"9" * 5000 + b"}", "recipe_file_json"),
        (b" " * (LARGEST + 1), "recipe_file_large"),
        (b"[]", "recipe_file_other"),
        (b'{"sluice_recipe": 1}', "recipe_file_other"),
        (b'{"sluice_recipe": 2, "fingerprint": "", "recipe": {}}', "recipe_file_version"),
        (b'{"sluice_recipe": true, "fingerprint": "", "recipe": {}}', "recipe_file_version"),
        (text(whole() | {"fingerprint": "0" * 64}), "recipe_file_fingerprint"),
        (text(whole() | {"recipe": []}), "recipe_file_field"),
    ],
)
def test_what_is_no_recipe_is_refused(content: bytes, code: str) -> None:
    with pytest.raises(BadFile) as refused:
        read(content)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"title": ""},
        {"title": "two\nlines"},
        {"title": "x" * 200},
        {"title": 7},
        {"tags": ["<b>"]},
        {"tags": ["x"] * 100},
        {"values": {"script": 1}},
        {"values": {"script": "a\u0000b"}},
        {"values": {f"v{n}": "" for n in range(200)}},
        {"checkpoints": "relative"},
        {"template": {"name": "../etc", "fingerprint": ""}},
        {"template": {"name": "ddp", "fingerprint": "zz"}},
        {"datasets": [{"name": "x", "version": -1}]},
        {"code": {"commit": "$(id)"}},
        {"unknown": 1},
        {"receipt": codec.dump(recipe().receipt) | {"gpus": True}},
        {"receipt": codec.dump(recipe().receipt) | {"gpus": -1}},
        {"receipt": codec.dump(recipe().receipt) | {"cost": 2**70}},
        {"receipt": codec.dump(recipe().receipt) | {"metrics": {"loss": "low"}}},
    ],
)
def test_a_document_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadFile) as refused:
        read(text(whole(**changes)))
    assert refused.value.code == "recipe_file_field"


def test_script_in_its_words_is_only_text() -> None:
    title = "<script>alert(1)</script>"
    assert read(text(whole(title=title))).recipe.title == title


FILES = {"train.py": "print(1)\n", "lib/data.py": ""}


def with_files(files: Any, named: str | None = None) -> dict[str, Any]:
    captured = recipe_code.digest(FILES) if named is None else named
    return whole(code=codec.dump(core.Code(captured=captured))) | {"files": files}


def test_code_comes_along() -> None:
    assert read(text(with_files(FILES))).files == FILES


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "recipe_file_field"),
        ([], "recipe_file_field"),
        ({"train.py": 1}, "recipe_file_field"),
        ({"../train.py": ""}, "recipe_file_field"),
        ({"/etc/passwd": ""}, "recipe_file_field"),
        ({"a\nb.py": ""}, "recipe_file_field"),
        ({"a.py": "\0"}, "recipe_file_field"),
        ({"a": "", "a/b": ""}, "recipe_file_field"),
        ({f"{n}.py": "" for n in range(101)}, "recipe_file_field"),
        ({"a.py": "x" * 2**18}, "recipe_file_field"),
        (FILES | {"train.py": "print(2)\n"}, "recipe_file_fingerprint"),
    ],
)
def test_code_that_is_none_or_another_is_refused(files: Any, code: str) -> None:
    with pytest.raises(BadFile) as refused:
        read(text(with_files(files)))
    assert refused.value.code == code


def test_files_that_no_recipe_names_are_refused() -> None:
    with pytest.raises(BadFile):
        read(text(whole() | {"files": FILES}))
