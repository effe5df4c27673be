"""Money in the browser: a quote, what is held, the charge; the leader's and the administrator's
pages on the same job."""

import re

import pytest
from playwright.sync_api import expect
from steps import SignIn, fill_form, shoot, submit

pytestmark = pytest.mark.browser

CHARGED_MS = 120_000


def test_a_quote_is_held_and_charged_and_everybody_sees_their_part(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    fill_form(
        page,
        template="command",
        group="nlp",
        partition="rtx4090",
        qos="normal",
        time_limit="60",
        name="priced",
        working_directory="~",
        **{"v-command": "sleep 3", "v-gpus_per_node": "1"},
    )
    quote = page.locator("#preview")
    expect(quote).to_contain_text("CN¥1.20")  # a card for an hour
    expect(quote).to_contain_text("Held for the worst case")
    expect(quote).to_contain_text("spot −18 %")
    submit(page)
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    expect(page.locator("#cost")).to_contain_text("Credit held")
    expect(page.locator("#state")).to_contain_text("COMPLETED", timeout=CHARGED_MS)
    expect(page.locator("#cost")).to_contain_text("it has been given back", timeout=CHARGED_MS)

    leader = sign_in("nlp-lead")
    leader.goto("/group/nlp")
    expect(leader.locator("main")).to_contain_text("priced")
    shoot(leader, "group", height=1000)
    leader.goto("/group/nlp/statement")
    expect(leader.locator("main")).to_contain_text("Charge")

    stranger = sign_in("vision-1")
    assert stranger.goto("/group/nlp").status == 404

    admin = sign_in("admin-1")
    admin.goto("/admin/credit")
    expect(admin.locator("main")).to_contain_text("nlp")


def test_what_is_typed_while_the_choices_come_stays(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    fill_form(page, template="command", **{"v-command": "true"})
    page.route("**/submit/choices", lambda route: (page.wait_for_timeout(700), route.continue_()))
    page.locator("select[name=partition]").select_option("rtx4090")
    page.fill("[name=time_limit]", "0:42:00")
    page.fill("[name=name]", "typed-meanwhile")
    page.wait_for_timeout(2500)
    expect(page.locator("[name=partition]")).to_have_value("rtx4090")
    expect(page.locator("[name=time_limit]")).to_have_value("0:42:00")
    expect(page.locator("[name=name]")).to_have_value("typed-meanwhile")
