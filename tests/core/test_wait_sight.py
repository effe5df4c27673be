"""Who sees which figures of waits: rows of few other people are hidden, and cannot be reckoned."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.wait_figures import Dimension, Question
from gateway.core.wait_sight import Sight, shown
from gateway.testing import builders as b

NOW = datetime(2026, 6, 30, tzinfo=UTC)
STRANGER = Sight(least=3, all=False, user="nlp-1", groups=())
LEADER = replace(STRANGER, user="nlp-lead", groups=("nlp",))


@dataclass(frozen=True)
class Row:
    people: frozenset[str]
    jobs: int = 1

    @property
    def others(self) -> int:
        return len(self.people)


def rows(**people: str) -> list[tuple[str, Row]]:
    return [(key, Row(frozenset(names), len(names))) for key, names in people.items()]


def seen(found: list[tuple[str, Row]], sight: Sight = STRANGER) -> tuple[set[str], int]:
    given_rows = dict(found)

    def together(keys: tuple[str, ...]) -> int:
        return len(frozenset().union(*(given_rows[key].people for key in keys)))

    answer = shown(found, sight, together)
    return {key for key, _ in answer.rows}, answer.hidden


def test_a_row_of_fewer_people_than_the_setting_is_hidden() -> None:
    assert seen(rows(a="abc", b="de", c="fg", d="hijk")) == ({"a", "d"}, 2)


def test_one_hidden_row_takes_the_next_smallest_with_it() -> None:
    assert seen(rows(a="abcd", b="efg", c="h")) == ({"a"}, 2)


def test_rows_of_the_same_few_people_are_not_told_by_what_is_left() -> None:
    """Two rows of one person: the sum less the others would be that person's."""
    assert seen(rows(a="abcd", b="efg", c="h", d="h")) == ({"a"}, 3)


def test_own_rows_are_never_hidden_and_help_to_hide_nobody() -> None:
    found = [("mine", Row(frozenset(), 5)), *rows(a="abc", b="d")]
    assert seen(found) == ({"mine"}, 2)


def test_an_operator_sees_all() -> None:
    operator = Sight.of(b.viewer("ops", role="operator"), 3)
    assert seen(rows(a="a", b="bc"), operator) == ({"a", "b"}, 0)


@given(
    st.dictionaries(st.text("rst", min_size=1), st.frozensets(st.sampled_from("abcdefgh"))),
    st.integers(1, 5),
)
def test_what_is_left_of_the_sum_is_nothing_or_enough_people(
    people: dict[str, frozenset[str]], least: int
) -> None:
    found = [(key, Row(names, max(1, len(names)))) for key, names in people.items()]
    visible, hidden = seen(found, replace(STRANGER, least=least))
    left = frozenset().union(*(names for key, names in people.items() if key not in visible))
    total = frozenset().union(*people.values()) if people else frozenset()
    assert all(len(people[key]) >= least or not people[key] for key in visible)
    assert hidden == len(people) - len(visible)
    if len(total) >= least:  # the sum is shown only then
        others_seen = [key for key in visible if people[key]]
        assert not hidden or len(left) >= least or not others_seen


def ask(**only: tuple[str, ...]) -> Question:
    return Question(now=NOW, only={Dimension(name): values for name, values in only.items()})


def test_one_may_ask_about_oneself_and_not_about_other_people() -> None:
    assert STRANGER.asked(ask(user=("nlp-1",))) is not None
    assert STRANGER.asked(ask(user=("nlp-2",))) is None
    assert STRANGER.asked(ask(user=("nlp-1", "nlp-2", "vision-1"))) is None


def test_a_leader_asks_about_people_in_the_groups_led_alone() -> None:
    found = LEADER.asked(ask(user=("nlp-1",)))
    assert found is not None
    assert found.only[Dimension.GROUP] == ("nlp",)
    assert LEADER.asked(ask(user=("nlp-1",), group=("vision",))) is None


def test_whose_rows_are_ones_own_goes_with_the_question() -> None:
    found = LEADER.asked(ask())
    assert found is not None
    assert (found.own_user, found.own_groups) == ("nlp-lead", ("nlp",))
