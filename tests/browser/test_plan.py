"""The planner's page as somebody types on it."""

from steps import SignIn


def test_the_address_follows_what_is_typed(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    page.goto("/plan")
    with page.expect_response(lambda answer: "params=13B" in answer.url):
        page.fill("[name=params]", "13B")
    page.wait_for_url("**/plan?params=13B&**")
    figure = page.locator("#plan h2").first.inner_text()
    page.reload()
    assert page.input_value("[name=params]") == "13B"
    assert page.locator("#plan h2").first.inner_text() == figure
