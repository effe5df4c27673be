"""A file from elsewhere whose values are as bad as a recipe's can be: its pages stay pages."""

import io
import json
import re
from typing import Any

import pytest

from gateway.core import recipes as core
from gateway.testing.recipe_samples import recipe
from gateway.wire import codec
from tests.web.conftest import Site

HTML = "<img src=x onerror=alert(1)>"
SHELL = "$(touch /tmp/owned); `id` | sh #"
DIRECTIVE = "train.py\n#SBATCH --uid=0"
TEMPLATE = "{{ config }}{% include '/etc/passwd' %}"
LARGEST = 2**53


def file(**changes: Any) -> bytes:
    document = codec.dump(recipe()) | changes
    whole = {
        "sluice_recipe": core.FORMAT,
        "fingerprint": core.fingerprint(document),
        "recipe": document,
        "files": {},
    }
    return json.dumps(whole).encode()


def taken(site: Site, content: bytes) -> str:
    answer = site.signed_in().post(
        "/library/recipes/import", {"file": (io.BytesIO(content), "recipe.json")}
    )
    assert answer.status_code == 303, answer.text
    assert "/library/recipes/" in answer.location
    return answer.location


WORST: dict[str, dict[str, Any]] = {
    "words": {
        "title": HTML,
        "summary": f"{HTML}\n{TEMPLATE}",
        "model": HTML,
        "name": SHELL,
        "values": {"script": DIRECTIVE, "arguments": SHELL, HTML: HTML, "__class__": TEMPLATE},
        "seeds": {HTML: HTML},
        "checkpoints": f"/{HTML}",
    },
    "parts": {
        "shape": codec.dump(recipe().shape)
        | {"partition": HTML, "qos": SHELL, "gpu_type": HTML, "time_limit": SHELL},
        "environment": codec.dump(core.EnvironmentUsed(f"../{HTML}", HTML, facts={HTML: HTML})),
        "code": codec.dump(core.Code("a" * 40, remote="javascript:alert(1)", folder=HTML)),
        "template": {"name": "no/such", "fingerprint": ""},
        "receipt": codec.dump(recipe().receipt) | {"cluster": HTML, "gpu_type": HTML},
    },
    "numbers": {
        "shape": codec.dump(recipe().shape)
        | {"nodes": 10**6, "nproc_per_node": 10**6, "gpus": 10**6, "tasks": 10**6},
        "datasets": [{"name": "pile", "version": LARGEST, "manifest": ""}],
        "receipt": codec.dump(recipe().receipt)
        | {
            "ran_at": 1e18,
            "gpus": core.MOST_CARDS,
            "run_seconds": LARGEST,
            "wait_seconds": LARGEST,
            "step_seconds": float(LARGEST),
            "tokens_per_second": 1e18,
            "mfu": 1e18,
            "peak_bytes": LARGEST,
            "cost": LARGEST,
            "quoted": LARGEST,
            "metrics": {"loss": 1e308, "gain": -1e308, "tiny": 5e-324},
        },
    },
    "nothing": {"summary": "", "model": "", "values": {}, "tags": [], "seeds": {}},
}


@pytest.mark.parametrize("worst", sorted(WORST))
def test_every_page_of_it_is_a_page_with_text_alone(site: Site, worst: str) -> None:
    plain, place = taken(site, file()), taken(site, file(**WORST[worst]))
    left, right = plain.rsplit("/", 1)[1], place.rsplit("/", 1)[1]
    browser = site.signed_in()
    for path in (
        place,
        "/library",
        f"/library/recipes/compare?left={left}&right={right}",
        f"/submit?recipe={right}",
        f"/submit?recipe={right}&check=1",
    ):
        page = browser.get(path)
        assert page.status_code == 200, path
        assert "<img src=x" not in page.text
        assert 'href="javascript:' not in page.text
        assert "root:x:0" not in page.text
    exported = browser.get(f"{place}/export.json")
    assert taken(site, exported.data) == place


def test_a_clone_of_it_leaves_out_what_a_form_would_refuse(site: Site) -> None:
    place = taken(site, file(**WORST["words"]))
    form = site.signed_in().get(f"/submit?recipe={place.rsplit('/', 1)[1]}").text
    assert "--uid=0" not in form
    assert "__class__" not in re.findall(r'name="(?:v-)?([^"]*)"', form)
    assert "The value of script does not pass the rules of the form" in form


def test_it_says_nothing_of_whose_it_is_or_where_it_came_from(site: Site) -> None:
    """No owner, parent or visibility of a file is believed: there is no field for them."""
    for name, value in (("parent", 1), ("person_id", 1), ("visibility", "site"), ("job_id", 1)):
        content = file(**{name: value})
        answer = site.signed_in().post(
            "/library/recipes/import",
            {"file": (io.BytesIO(content), "recipe.json")},
            follow_redirects=True,
        )
        assert "note bad" in answer.text, name
    place = taken(site, file())
    assert site.signed_in("nlp-2").get(place).status_code == 404


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_is_none_is_refused_wherever_it_stands(site: Site, number: str) -> None:
    whole = json.loads(file())
    whole["recipe"]["receipt"]["metrics"]["loss"] = 1.2345
    content = json.dumps(whole).replace("1.2345", number).encode()
    answer = site.signed_in().post(
        "/library/recipes/import",
        {"file": (io.BytesIO(content), "recipe.json")},
        follow_redirects=True,
    )
    assert answer.status_code == 200
    assert "note bad" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        {"gpus": "99999999999999999999"},
        {"gpus": "-1"},
        {"cost": "1e300"},
        {"cost": "nan"},
        {"cost": "-inf"},
        {"page": "99999999999999999999"},
        {"q": "' OR 1=1 --", "tag": "' OR 1=1 --", "order": "id; DROP TABLE recipe"},
        {"q": "a\0b", "model": "a\0b"},
        {"q": "\\' & !:* <->"},
    ],
)
def test_a_search_that_is_none_is_a_page(site: Site, query: dict[str, str]) -> None:
    taken(site, file())
    assert site.signed_in().get("/library", query_string=query).status_code == 200


@pytest.mark.parametrize("number", ["0", "2147483648", "99999999999999999999"])
def test_a_number_that_no_recipe_has_is_not_found(site: Site, number: str) -> None:
    browser = site.signed_in()
    for path in (number, f"{number}/export.json", f"compare?left={number}&right={number}"):
        assert browser.get(f"/library/recipes/{path}").status_code == 404, path
    assert browser.get(f"/submit?recipe={number}").status_code in {200, 404}
