"""Cases 1 and 2: time words and forms, and limits typed by people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.durations import (
    MAX_MINUTES,
    BadTimeLimit,
    Special,
    format_time_limit,
    parse_slurm_duration,
    parse_slurm_limit,
    parse_time_limit,
    parts,
)


@pytest.mark.parametrize(
    ("typed", "minutes"),
    [
        ("90", 90),
        ("30:00", 30),
        ("1:30", 2),
        ("2-12", 3600),
        ("2-12:30", 3630),
        ("48:00:00", 2880),
        ("48:00:01", 2881),
        ("0-00:00:01", 1),
        ("  10  ", 10),
        ("１：３０", 2),
        ("120:00", 120),
        ("72:00:00", 4320),
    ],
)
def test_a_typed_limit_is_read_as_sbatch_reads_it(typed: str, minutes: int) -> None:
    assert parse_time_limit(typed) == minutes


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", "time_limit_empty"),
        (" \t", "time_limit_empty"),
        ("0", "time_limit_none"),
        ("0:00", "time_limit_none"),
        ("0-0", "time_limit_none"),
        ("00:00:00", "time_limit_none"),
        ("UNLIMITED", "time_limit_none"),
        ("infinite", "time_limit_none"),
        ("-1", "time_limit_none"),
        ("2h", "time_limit_unreadable"),
        ("1.5", "time_limit_unreadable"),
        ("-5", "time_limit_unreadable"),
        ("1:2:3:4", "time_limit_unreadable"),
        ("2–12", "time_limit_unreadable"),
        ("10\n#SBATCH --qos=urgent", "time_limit_unreadable"),
        ("٣", "time_limit_unreadable"),
        ("²", "time_limit_unreadable"),
        ("9" * 500, "time_limit_unreadable"),
        ("1:90", "time_limit_out_of_range"),
        ("1:60:00", "time_limit_out_of_range"),
        ("1-36", "time_limit_out_of_range"),
        (str(MAX_MINUTES + 1), "time_limit_too_long"),
        ("4294967295", "time_limit_too_long"),
    ],
)
def test_what_is_no_limit_is_refused_with_a_reason(typed: str, code: str) -> None:
    with pytest.raises(BadTimeLimit) as refused:
        parse_time_limit(typed)
    assert refused.value.code == code
    assert refused.value.field == "time_limit"


@given(st.integers(1, MAX_MINUTES))
def test_format_and_parse_are_inverse(minutes: int) -> None:
    assert parse_time_limit(format_time_limit(minutes)) == minutes
    assert parse_slurm_limit(format_time_limit(minutes)) == minutes
    days, hours, rest = parts(minutes)
    assert (days * 24 + hours) * 60 + rest == minutes
    assert hours < 24
    assert rest < 60


@given(st.text())
def test_any_text_is_a_limit_or_a_refusal(text: str) -> None:
    try:
        minutes = parse_time_limit(text)
    except BadTimeLimit:
        return
    assert 1 <= minutes <= MAX_MINUTES


def test_the_form_shows_days_hours_minutes() -> None:
    assert format_time_limit(3630) == "2-12:30:00"
    assert format_time_limit(1) == "0-00:01:00"
    assert parts(3630) == (2, 12, 30)


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        ("1-02:03:04", 93784),
        ("02:03:04", 7384),
        ("03:04.500", 184.5),
        ("00:00:00", 0),
        ("10-00:00:00", 864000),
        ("2-00:00:00", 172800),
        ("01:30", 90),
    ],
)
def test_a_printed_duration_in_seconds(printed: str, seconds: float) -> None:
    assert parse_slurm_duration(printed) == seconds


@pytest.mark.parametrize(
    ("printed", "special"),
    [
        ("UNLIMITED", Special.UNLIMITED),
        ("Partition_Limit", Special.PARTITION_LIMIT),
        ("", Special.UNKNOWN),
        (None, Special.UNKNOWN),
        ("INVALID", Special.UNKNOWN),
        ("NOT_SET", Special.UNKNOWN),
        ("None", Special.UNKNOWN),
        ("90", Special.UNKNOWN),
        ("-00:01:00", Special.UNKNOWN),
        ("1-02:03", Special.UNKNOWN),
    ],
)
def test_words_are_neither_zero_nor_each_other(printed: str | None, special: Special) -> None:
    assert parse_slurm_duration(printed) is special


@given(st.text())
def test_reading_slurm_never_raises(text: str) -> None:
    assert parse_slurm_duration(text) is not None
    assert parse_slurm_limit(text) is not None


def test_a_limit_column_may_hold_bare_minutes() -> None:
    assert parse_slurm_limit("2880") == 2880
    assert parse_slurm_limit("2-00:00:00") == 2880
    assert parse_slurm_limit("30:01") == 31
    assert parse_slurm_limit("UNLIMITED") is Special.UNLIMITED
