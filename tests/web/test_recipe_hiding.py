"""An administrator takes a recipe from the Library; the box in the head finds recipes; two that
are ticked are compared; who may not read the checkpoints is told."""

import io

import pytest

from gateway.core.access import Role
from gateway.testing import builders as b
from tests.web.conftest import Site
from tests.web.test_recipe_hostile import file
from tests.web.test_recipe_pages import published


@pytest.fixture
def admin(site: Site) -> Site:
    b.add_person(site.begin, "admin", role=Role.ADMINISTRATOR.value)
    return site


def test_hidden_with_a_reason_that_its_owner_reads(admin: Site) -> None:
    made = published(admin, visibility="site")
    place, owner, other = (
        f"/library/recipes/{made}",
        admin.signed_in(),
        admin.signed_in("vision-1"),
    )
    for browser in (owner, other):
        assert browser.post(f"{place}/hide", {"why": "x", "hidden": "1"}).status_code in {403, 404}
    chief = admin.signed_in("admin")
    refused = chief.post(f"{place}/hide", {"why": " ", "hidden": "1"}, follow_redirects=True)
    assert "Say why" in refused.text
    assert other.get(place).status_code == 200

    chief.post(f"{place}/hide", {"why": "Licence of the <b>data</b>", "hidden": "1"})
    assert other.get(place).status_code == 404
    for browser in (owner, other, chief):
        assert place not in browser.get("/library?q=tiny").text
    page = owner.get(place).text
    assert "Licence of the &lt;b&gt;data&lt;/b&gt;" in page
    again = owner.post(f"{place}/share", {"visibility": "site"})
    assert again.status_code == 404
    exported = owner.get(f"{place}/export.json").data
    brought = owner.post(
        "/library/recipes/import",
        {"file": (io.BytesIO(exported), "r.json")},
        follow_redirects=True,
    )
    assert "Only an administrator can put it there again" in brought.text

    chief.post(f"{place}/hide", {"why": "Cleared up", "hidden": "0"})
    assert place in other.get("/library?q=tiny").text
    page = chief.get(place).text
    assert page.index("Cleared up") < page.index("Licence of the")


def test_what_its_owner_alone_sees_is_no_matter_of_administrators(admin: Site) -> None:
    mine, groups = published(admin, visibility="me"), published(admin, title="Group's")
    chief = admin.signed_in("admin")
    assert chief.get(f"/library/recipes/{mine}").status_code == 404
    answer = chief.post(f"/library/recipes/{mine}/hide", {"why": "x", "hidden": "1"})
    assert answer.status_code == 404
    assert chief.get(f"/library/recipes/{groups}").status_code == 200


def test_only_what_is_hidden_is_put_back_and_once(admin: Site) -> None:
    made = published(admin, visibility="site")
    place, chief = f"/library/recipes/{made}", admin.signed_in("admin")
    assert chief.post(f"{place}/hide", {"why": "x", "hidden": "0"}).status_code == 404
    admin.signed_in().post(f"{place}/retract")
    twice = chief.post(f"{place}/hide", {"why": "x", "hidden": "1"}, follow_redirects=True)
    assert "not in the Library any more" in twice.text
    assert chief.post(f"{place}/hide", {"why": "x", "hidden": "0"}).status_code == 404


def test_the_box_in_the_head_finds_recipes(site: Site) -> None:
    published(site)
    for login, found in (("nlp-2", True), ("vision-1", False)):
        browser = site.signed_in(login)
        page = browser.get("/search?q=训练", follow_redirects=True).text
        assert ("1 recipe with these words in the Library" in page) is found
    assert "recipe with these words" not in site.signed_in().get("/search?q=zzz").text


def test_two_that_are_ticked_are_compared(site: Site) -> None:
    one, two = published(site), published(site, title="Another")
    browser = site.signed_in()
    page = browser.get("/library").text
    assert page.count('name="recipe"') == 2
    compared = browser.get(f"/library/recipes/compare?recipe={two}&recipe={one}").text
    assert compared.index("Another") < compared.index("Tiny GPT")
    for ticked in ("", f"recipe={one}", f"recipe={one}&recipe={two}&recipe={one}", "recipe=x"):
        answer = browser.get(f"/library/recipes/compare?{ticked}", follow_redirects=True)
        assert "Tick two recipes" in answer.text, ticked
    hidden = browser.get(f"/library/recipes/compare?recipe={one}&recipe=999")
    assert hidden.status_code == 404


def test_who_may_not_read_the_checkpoints_is_told(site: Site) -> None:
    files = site.broker.files
    for folder in ("/home/nlp-1/open", "/archive/shared", "/home/nlp-1/gone"):
        files.add_folder(folder, "nlp-1")
    made = published(site, visibility="site", checkpoints="/home/nlp-1/open")
    place = f"/library/recipes/{made}/checkpoints"
    assert "You can read the checkpoints" in site.signed_in().post(place).text
    assert "You may not read the folder" in site.signed_in("vision-1").post(place).text
    files.folders.discard("/home/nlp-1/open")
    assert "not there any more" in site.signed_in().post(place).text
    site.broker.unreachable = True
    assert "Nobody could be asked" in site.signed_in().post(place).text


def test_checkpoints_of_a_file_from_elsewhere_are_asked_for_as_the_person(site: Site) -> None:
    """A path that a stranger wrote tells nothing that this person could not see themselves."""
    content = file(checkpoints="/etc/shadow")
    browser = site.signed_in()
    answer = browser.post("/library/recipes/import", {"file": (io.BytesIO(content), "r.json")})
    page = browser.post(f"{answer.location}/checkpoints").text
    assert "You may not read the folder" in page or "not there any more" in page
    without = browser.post("/library/recipes/import", {"file": (io.BytesIO(file()), "r.json")})
    assert browser.post(f"{without.location}/checkpoints").status_code == 404
