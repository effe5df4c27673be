"""Each code of the answers has a text."""

from gateway.core.caps import KEYS, Holder
from gateway.core.reason_limits import LIMITS
from gateway.core.standing import FACTORS
from gateway.core.whyhelp import CODES
from gateway.core.whynot import UNKNOWN
from gateway.web.why_texts import (
    FACTOR_HELPS,
    FACTOR_TEXTS,
    HELP_TEXTS,
    LIMIT_TEXTS,
    UNKNOWN_TEXTS,
)


def test_each_limit_that_a_reason_names_has_a_sentence():
    known = {*KEYS, "max_nodes", "max_time_minutes"}
    named = {(one.holder, one.key) for one in LIMITS.values() if one.key in known}
    assert named - LIMIT_TEXTS.keys() == set()
    assert LIMIT_TEXTS.keys() - named == {(Holder.GROUP, "own_grp_tres")}


def test_each_help_and_each_gap_has_a_sentence():
    assert set(HELP_TEXTS) == set(CODES)
    assert set(UNKNOWN_TEXTS) == set(UNKNOWN)


def test_each_factor_of_the_priority_has_words():
    assert set(FACTORS) == set(FACTOR_TEXTS) == set(FACTOR_HELPS)
