"""Every text of the pages is translated, and the catalogue knows no text that is gone."""

import re
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from gateway.config import assets
from gateway.web import i18n

ROOT = assets()
PO = ROOT / "gateway/web/translations/zh_Hans/LC_MESSAGES/messages.po"
OPTIONS = {"trim_blocks": "true", "lstrip_blocks": "true"}
KEYWORDS = {
    "_": None,
    "_l": None,
    "gettext": None,
    "lazy_gettext": None,
    "ngettext": (1, 2),
}
_GAP = re.compile(r"%\((\w+)\)[sd]")


def _used() -> set[str]:
    found = set()
    for folder in ("gateway/web", "templates"):
        for _, _, message, _, _ in extract_from_dir(
            str(ROOT / folder),
            method_map=[("**.py", "python"), ("**.html", "jinja2")],
            options_map={"**.html": OPTIONS},
            keywords=KEYWORDS,
        ):
            found.add(message[0] if isinstance(message, tuple) else message)
    return found


@pytest.fixture(scope="module")
def catalogue() -> Catalog:
    with Path(PO).open("rb") as file:
        return read_po(file, locale="zh_Hans")


def test_the_catalogue_holds_exactly_the_texts_of_the_sources(catalogue: Catalog) -> None:
    known = {m.id[0] if isinstance(m.id, tuple) else m.id for m in catalogue if m.id}
    used = _used()
    assert used - known == set(), "texts without a translation"
    assert known - used == set(), "translations without a text"


def test_each_text_is_translated_and_none_is_fuzzy(catalogue: Catalog) -> None:
    # A catalogue without its header counts as fuzzy, and compiling it does nothing.
    assert not catalogue.fuzzy
    for message in catalogue:
        if not message.id:
            continue
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        assert all(texts), message.id
        assert not message.fuzzy, message.id


def test_a_translation_has_the_gaps_of_its_text(catalogue: Catalog) -> None:
    for message in catalogue:
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        if message.id:
            assert set(_GAP.findall(ids[-1])) == set(_GAP.findall(str(texts[-1]))), message.id


def test_a_translation_has_no_percent_sign_where_its_text_has_none(catalogue: Catalog) -> None:
    """Templates fill the gaps of every text: a sign that opens no gap breaks the page."""
    for message in catalogue:
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        if message.id and "%" not in ids[-1]:
            assert not any("%" in str(text) for text in texts), message.id
        left = re.sub(r"%\(\w+\)[sd]|%%", "", str(texts[-1]))
        assert not message.id or "%" not in left, message.id


def test_the_languages_on_offer_have_a_catalogue() -> None:
    folder = ROOT / "gateway/web/translations"
    assert {path.name for path in folder.iterdir() if path.is_dir()} | {"en"} == set(i18n.LANGUAGES)
