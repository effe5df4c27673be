"""Histories in CSV and SWF become sets: what is read, what is held, and that nothing is lost."""

import csv
import gzip
import io
import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given as any_of
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gateway.core.csv_mapping import BadMapping, from_toml
from gateway.core.tres import gpu_count, parse_tres, single_gpu_type
from gateway.history import sets
from gateway.history.importing.load import Given
from gateway.history.importing.spool import UnreadableFile
from gateway.history.reading import runs
from gateway.services.import_set import BadSetName, import_set, name_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SHARED = Path(__file__).resolve().parents[3] / "shared"
HEADER = "id,submit,eligible,start,end,state,gpus"
ROW = (
    "1,2026-01-01 10:00:00,2026-01-01 10:10:00,2026-01-01 11:00:00,2026-01-01 12:00:00,COMPLETED,8"
)


class Site:
    """A home with imported sets."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.imports = home / sets.FOLDER
        self.kept = []

    def put(self, text, *, kind="csv", name="set", zone="UTC", mapping=None, **more):
        data = text if isinstance(text, bytes) else text.encode()
        path = self.home / more.pop("file", "given.csv")
        path.write_bytes(data)
        told = from_toml(mapping) if isinstance(mapping, str) else mapping
        given = Given(str(path), kind, name, zone, NOW, mapping=told, **more)

        def keep(rows):
            self.kept += [(row.raw, row.reason) for row in rows]
            return len(rows)

        return import_set(given, imports=self.imports, keep=keep)

    def rows(self, *columns, where="true"):
        with runs(self.home / "history") as connection:
            chosen = ", ".join(f'"{column}"' for column in columns)
            query = f"SELECT {chosen} FROM waits WHERE {where} ORDER BY slurm_id, start_time"
            found = connection.execute(query).fetchall()
        return [row[0] for row in found] if len(columns) == 1 else found


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def counts(report):
    loaded = report.loaded
    assert loaded.ties
    return loaded.stored, loaded.held, loaded.known, loaded.repeated, loaded.steps


def at(text):
    return datetime.fromisoformat(text)


def test_a_row_is_stored_whole_with_where_its_wait_went(site):
    report = site.put(f"{HEADER}\n{ROW}\n")
    assert counts(report) == (1, 0, 0, 0, 0)
    assert site.rows("slurm_id", "state", "gpus", "source", "charge", "run_id") == [
        (1, "COMPLETED", 8, "set", None, None)
    ]
    assert site.rows("submit_time", "eligible_time", "start_time", "end_time") == [
        tuple(at(f"2026-01-01 {time}:00") for time in ("10:00", "10:10", "11:00", "12:00"))
    ]
    assert site.rows("elapsed_seconds", "cause_deferral", "cause_unknown", "cause_priority") == [
        (3600, 600, 3000, 0)
    ]
    (known,) = sets.listed(site.imports)
    assert (known.name, known.format, known.rows, known.held) == ("set", "csv", 1, 0)


def test_the_same_file_again_and_under_another_name_changes_nothing(site):
    text = f"{HEADER}\n{ROW}\n"
    site.put(text)
    before = sorted(site.imports.rglob("*.parquet"))
    assert counts(site.put(text)) == (0, 0, 1, 0, 0)
    assert counts(site.put(text, name="other")) == (0, 0, 1, 0, 0)
    assert sorted(site.imports.rglob("*.parquet")) == before
    assert [one.name for one in sets.listed(site.imports)] == ["set"]
    assert not (site.imports / "other").exists()


def test_a_longer_file_of_the_same_jobs_adds_what_is_new(site):
    site.put(f"{HEADER}\n{ROW}\n")
    more = ROW.replace("1,", "2,", 1)
    assert counts(site.put(f"{HEADER}\n{more}\n{ROW}\n")) == (1, 0, 1, 0, 0)
    assert site.rows("slurm_id") == [1, 2]
    assert sets.listed(site.imports)[0].rows == 2


def test_another_cluster_s_job_with_the_same_id_is_another_job(site):
    site.put(f"{HEADER}\n{ROW}\n", cluster="north")
    assert counts(site.put(f"{HEADER}\n{ROW}\n", cluster="south")) == (1, 0, 0, 0, 0)


BAD = {
    "no time of submission": "2,,,2026-01-01 11:00:00,2026-01-01 12:00:00,COMPLETED,8",
    "start": "2,2026-01-01 10:00:00,,soon,2026-01-01 12:00:00,COMPLETED,8",
    "no job state": "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 12:00:00,WEIRD,8",
    "no job id": ",2026-01-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 12:00:00,FAILED,8",
    "it ends before it begins": (
        "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 10:30:00,COMPLETED,8"
    ),
    "it starts before it is submitted": (
        "2,2026-01-01 10:00:00,,2026-01-01 09:00:00,2026-01-01 12:00:00,COMPLETED,8"
    ),
    "it is over, but no time tells when": (
        "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,,COMPLETED,8"
    ),
    "a number below 0": (
        "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 12:00:00,COMPLETED,-8"
    ),
    "a number that no cluster has": (
        "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 12:00:00,COMPLETED,10737418240"
    ),
    "a time before 1970 or after 2100": (
        "2,2026-01-01 10:00:00,,2026-01-01 11:00:00,9999-01-01 12:00:00,COMPLETED,8"
    ),
    "submit": "2,0026-13-01 10:00:00,,2026-01-01 11:00:00,2026-01-01 12:00:00,COMPLETED,8",
    "too few fields": "2,2026-01-01 10:00:00",
    "too many fields": f"{ROW},9,9",
    "a quote that nothing closes": ROW.replace("COMPLETED", '"COMP"LETED'),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_row_is_held_with_its_text_and_counted(site, reason):
    report = site.put(f"{HEADER}\n{BAD[reason]}\n{ROW}\n")
    assert counts(report) == (1, 1, 0, 0, 0)
    assert report.loaded.cut is None
    assert dict(report.loaded.reasons) == {reason: 1}
    ((raw, why),) = site.kept
    assert raw == BAD[reason]
    assert why.startswith(f"set: {reason}")
    assert sets.listed(site.imports)[0].held == 1


def test_of_many_bad_rows_all_are_counted_and_some_kept(site):
    rows = "\n".join(f"{number},soon,,,,FAILED,1" for number in range(3000))
    report = site.put(f"{HEADER}\n{rows}\n{ROW}\n")
    assert counts(report) == (1, 3000, 0, 0, 0)
    assert len(site.kept) == 1000


def test_what_never_started_and_what_waits_are_told_apart(site):
    rows = [
        "1,2026-01-01 10:00:00,Unknown,Unknown,2026-01-01 11:00:00,CANCELLED by 7,2",
        "2,2026-01-01 10:00:00,2026-01-01 10:00:00,None,Unknown,PENDING,2",
        "3,2026-01-01 10:00:00,2026-01-01 10:00:00,2026-01-01 11:00:00,Unknown,RUNNING,2",
    ]
    site.put("\n".join([HEADER, *rows]))
    seen = site.rows("state", "start_time", "end_time", "cause_deferral", "cause_unknown")
    waited = 3600  # the file tells of nothing later
    assert seen == [
        ("CANCELLED", None, at("2026-01-01 11:00:00"), 3600, 0),
        ("PENDING", None, None, 0, waited),
        ("RUNNING", at("2026-01-01 11:00:00"), None, 0, 3600),
    ]
    assert site.rows("seen_at") == [None, at("2026-01-01 11:00:00"), None]


def test_the_same_row_twice_is_one_and_a_requeued_job_has_two_runs(site):
    again = ROW.replace("11:00:00", "13:00:00").replace("12:00:00", "14:00:00")
    other = ROW.replace("COMPLETED", "FAILED")
    report = site.put("\n".join([HEADER, again, ROW, ROW, other]))
    assert counts(report) == (2, 1, 0, 1, 0)
    assert site.rows("start_time", "restarts") == [
        (at("2026-01-01 11:00:00"), 0),
        (at("2026-01-01 13:00:00"), 1),
    ]


def test_without_an_id_jobs_that_are_alike_are_jobs(site):
    text = "submit,start,end\n" + "2026-01-01 10:00,2026-01-01 11:00,2026-01-01 12:00\n" * 3
    assert counts(site.put(text)) == (3, 0, 0, 0, 0)
    assert counts(site.put(text, name="again")) == (0, 0, 3, 0, 0)


def test_text_of_any_kind_is_kept_as_it_is(site):
    rows = [
        '1,2026-01-01 10:00:00,2026-01-01 11:00:00,2026-01-01 12:00:00,"a ""b"", c"',
        '2,2026-01-01 10:00:00,2026-01-01 11:00:00,2026-01-01 12:00:00,"two\nlines"',
        "3,2026-01-01 10:00:00,2026-01-01 11:00:00,2026-01-01 12:00:00,组🚀",
        "4,2026-01-01 10:00:00,2026-01-01 11:00:00,2026-01-01 12:00:00,'; DROP TABLE raw --",
    ]
    text = "\n".join(["id,submit,start,end,user", *rows]) + "\n"
    expected = ['a "b", c', "two\nlines", "组🚀", "'; DROP TABLE raw --"]
    site.put(text)
    assert site.rows("user") == expected
    with_bom = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    site.put(with_bom, name="windows", cluster="w")
    assert site.rows("user", where="source = 'windows'") == [
        one.replace("\n", "\r\n") for one in expected
    ]


def test_bytes_that_are_no_utf8_nul_and_both_line_ends_lose_no_row(site):
    row = b"%d,2026-01-01 10:00:00,2026-01-01 11:00:00,2026-01-01 12:00:00,%b"
    rows = [row % (1, b"a\xff"), row % (2, b"b\x00"), row % (3, b"c\r"), row % (4, b"d")]
    report = site.put(b"id,submit,start,end,user\n" + b"\n".join(rows))
    assert counts(report) == (4, 0, 0, 0, 0)
    assert site.rows("user") == ["a\\xff", "b\ufffd", "c", "d"]


def test_text_in_utf_16_is_refused_by_its_name(site):
    with pytest.raises(UnreadableFile, match=r"UTF-16.*save it as UTF-8"):
        site.put(f"{HEADER}\n{ROW}\n".encode("utf-16"))


def test_of_a_file_cut_in_the_middle_the_whole_rows_are_imported_and_it_is_said(site):
    text = "\n".join([HEADER, *(ROW.replace("1,", f"{n},", 1) for n in range(1, 101))]) + "\n"
    report = site.put(text[:-40])
    assert counts(report) == (99, 1, 0, 0, 0)
    assert "line 101" in report.loaded.cut
    assert not report.whole


def test_of_a_cut_compressed_file_too(site):
    numbers = random.Random(1)  # the cut is in a row, not at its end
    rows = [ROW.replace("1,", f"{numbers.getrandbits(30)},", 1) for _ in range(1000)]
    packed = gzip.compress("\n".join([HEADER, *rows]).encode())
    report = site.put(packed[: len(packed) // 2])
    stored, held, *_ = counts(report)
    assert 300 < stored < 700
    assert held == 1
    assert "compressed file ends in the middle" in report.loaded.cut


def test_of_a_compressed_file_with_a_broken_byte_all_before_it_is_imported(site):
    text = "\n".join([HEADER, *(ROW.replace("1,", f"{n},", 1) for n in range(1, 101))]) + "\n"
    packed = bytearray(gzip.compress(text.encode()))
    packed[-6] ^= 0xFF  # of the checksum behind the text
    report = site.put(bytes(packed))
    assert counts(report) == (100, 0, 0, 0, 0)
    assert "incorrect data check" in report.loaded.cut
    packed[12] ^= 0xFF
    with pytest.raises(UnreadableFile, match="compressed file ends in the middle"):
        site.put(bytes(packed))


def test_a_quote_begins_nothing_where_sacct_wrote_the_file(site):
    """Else the rows up to the next quote would be one field of one row that looks good."""
    rows = [f"{ROW.replace('1,', f'{n},', 1)},a" for n in range(1, 6)]
    rows[1] = f'{rows[1][:-1]}"x'
    rows[3] = f'{rows[3][:-1]}y"'
    report = site.put("\n".join([f"Job{HEADER},user", *rows, ""]).replace(",", "|"))
    assert counts(report) == (5, 0, 0, 0, 0)
    assert site.rows("user") == ["a", '"x', "a", 'y"', "a"]


@pytest.mark.parametrize("delimiter", ["ab", '"', "\n"])
def test_what_is_no_delimiter_is_refused(site, delimiter):
    with pytest.raises(BadMapping, match="no delimiter"):
        site.put(f"{HEADER}\n{ROW}\n", delimiter=delimiter)


def test_a_quote_that_the_end_does_not_close_is_a_cut(site):
    report = site.put(f'{HEADER}\n{ROW}\n2,2026-01-01 10:00:00,,,,"FAI')
    assert counts(report) == (1, 1, 0, 0, 0)
    assert report.loaded.cut is not None


def test_a_file_without_rows_stores_nothing_and_an_empty_one_is_refused(site):
    assert counts(site.put(f"{HEADER}\n")) == (0, 0, 0, 0, 0)
    assert sets.listed(site.imports) == []
    with pytest.raises(BadMapping, match="empty"):
        site.put("")


def test_a_killed_import_leaves_what_was_there(site, monkeypatch):
    site.put(f"{HEADER}\n{ROW}\n")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sets, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            site.put(f"{HEADER}\n{ROW.replace('1,', '2,', 1)}\n")
    assert site.rows("slurm_id") == [1]
    assert len(sorted(site.imports.rglob("*.parquet"))) == 2
    site.put(f"{HEADER}\n{ROW.replace('1,', '3,', 1)}\n")
    assert site.rows("slurm_id") == [1, 3]
    assert len(sorted(site.imports.rglob("*.parquet"))) == 2


def test_times_of_a_zone_and_of_the_nights_when_clocks_change(site):
    """In the hour that comes twice, elapsed tells; without it, the earlier one is taken."""
    rows = [
        "1,2025-10-26 01:00:00,2025-10-26 02:30:00,2025-10-26 02:30:00,3600",  # over the change
        "2,2025-10-26 01:00:00,2025-10-26 02:30:00,2025-10-26 03:30:00,3600",  # the later 02:30
        "3,2025-10-26 01:00:00,2025-10-26 02:30:00,2025-10-26 03:30:00,7200",  # the earlier
        "4,2025-10-26 01:00:00,2025-10-26 02:30:00,2025-10-26 03:30:00,",
        "5,2025-03-30 01:00:00,2025-03-30 01:30:00,2025-03-30 03:30:00,3600",
        "6,2025-03-30 01:00:00,2025-03-30 02:30:00,2025-03-30 04:30:00,3600",  # no such time
        "7,2025-07-01T10:00:00Z,2025-07-01T13:00:00+02:00,2025-07-01T14:00:00,3600",
    ]
    text = "\n".join(["id,submit,start,end,elapsed", *rows])
    assert counts(site.put(text, zone="Europe/Berlin")) == (7, 0, 0, 0, 0)
    spans = site.rows("start_time", "end_time")
    assert [(f"{start:%H:%M}", (end - start).total_seconds()) for start, end in spans] == [
        ("00:30", 3600),
        ("01:30", 3600),
        ("00:30", 7200),
        ("00:30", 7200),
        ("00:30", 3600),
        ("01:30", 3600),
        ("11:00", 3600),
    ]


def test_shanghai_had_summer_time_until_1991(site):
    rows = [
        "1,1990-09-16 00:30:00,1990-09-16 01:30:00,1990-09-16 01:30:00,3600",
        "2,1990-07-01 00:00:00,1990-07-01 00:00:00,1990-07-01 01:00:00,3600",
        "3,2026-01-01 00:00:00,2026-01-01 00:00:00,2026-01-01 01:00:00,3600",
    ]
    text = "\n".join(["id,submit,start,end,elapsed", *rows])
    assert counts(site.put(text, zone="Asia/Shanghai")) == (3, 0, 0, 0, 0)
    assert site.rows("start_time") == [
        at("1990-09-15 16:30"),
        at("1990-06-30 15:00"),
        at("2025-12-31 16:00"),
    ]


@hypothesis_settings(max_examples=15, deadline=None)
@any_of(data=st.data())
def test_any_time_is_read_as_python_reads_it(tmp_path_factory, data):
    zone = data.draw(st.sampled_from(["Europe/Berlin", "Asia/Shanghai", "America/Sao_Paulo"]))
    times = data.draw(
        st.lists(
            st.datetimes(datetime(1971, 1, 1), datetime(2090, 1, 1)).map(  # noqa: DTZ001
                lambda time: time.replace(microsecond=0)
            ),
            min_size=1,
            max_size=40,
        )
    )
    site = Site(tmp_path_factory.mktemp("home"))
    rows = [f"{number},{time}" for number, time in enumerate(times)]
    site.put("\n".join(["id,submit,wait", *(f"{row},0" for row in rows)]), zone=zone)
    assert site.rows("submit_time") == [
        time.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None) for time in times
    ]


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12)
SECONDS = st.integers(0, 10**7)


@hypothesis_settings(max_examples=30, deadline=None)
@any_of(
    jobs=st.lists(st.tuples(WORDS, SECONDS, SECONDS, SECONDS, st.integers(0, 512)), max_size=30),
    ends=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_any_rows_written_as_csv_come_back(tmp_path_factory, jobs, ends, quoting):
    site = Site(tmp_path_factory.mktemp("home"))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=ends, quoting=quoting)
    writer.writerow(["id", "user", "submit", "eligible", "start", "end", "gpus"])
    begin = 1_700_000_000
    expected = []
    for number, (user, deferral, wait, run, gpus) in enumerate(jobs):
        submit = begin + number
        moments = [submit, submit + deferral, submit + deferral + wait]
        writer.writerow([number, user, *moments, moments[-1] + run, gpus])
        expected.append((number, user.strip() or None, deferral, wait, run, gpus))
    assert counts(site.put(out.getvalue())) == (len(jobs), 0, 0, 0, 0)
    columns = ("slurm_id", "user", "cause_deferral", "cause_unknown", "elapsed_seconds", "gpus")
    assert site.rows(*columns) == expected


@hypothesis_settings(max_examples=20, deadline=None)
@any_of(
    texts=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["cpu", "node", "gres/gpu", "gres/gpu:a100", "gres/gpu:v100", "gres/gpumem"]
                ),
                st.integers(0, 64),
            ),
            min_size=1,
            max_size=5,
            unique_by=lambda pair: pair[0],
        ),
        min_size=1,
        max_size=20,
    )
)
def test_resources_are_counted_as_everywhere_else(tmp_path_factory, texts):
    site = Site(tmp_path_factory.mktemp("home"))
    written = [",".join(f"{name}={count}" for name, count in pairs) for pairs in texts]
    rows = [f'{n},1700000000,1700000000,1700000001,"{t}"' for n, t in enumerate(written)]
    site.put("\n".join(["id,submit,start,end,AllocTRES", *rows]))
    read = [parse_tres(text) for text in written]
    assert site.rows("gpus", "gpu_type", "cpus", "nodes") == [
        (gpu_count(tres)[0], single_gpu_type(tres), tres.get("cpu"), tres.get("node"))
        for tres in read
    ]


def test_numbers_of_resources_are_named_by_the_mapping_or_taken_for_cards(site):
    rows = [
        '1,1700000000,1700000000,1700000001,"1=4,2=8192,4=2,1001=8,1002=8"',
        '2,1700000000,1700000000,1700000001,"1=4,4=1"',
        '3,1700000000,1700000000,1700000001,"1=4,1002=2,1005=30"',
    ]
    text = "\n".join(["id_job,time_submit,time_start,time_end,tres_alloc", *rows])
    site.put(text)
    assert site.rows("gpus", "cpus", "nodes") == [(8, 4, 2), (0, 4, 1), (30, 4, None)]
    site.put(text, name="named", cluster="n", mapping='[tres]\n1002 = "gres/gpu"')
    assert site.rows("gpus", where="source = 'named'") == [8, 0, 2]


DURATIONS = {
    "90": 90,
    "01:30": 90,
    "01:00:00": 3600,
    "1-02:03:04": 93784,
    "7 days 00:00:00": 604800,
    "1 day, 1:00:00": 90000,
    "03:04.500": 184,
    "90.9": 90,
}


@pytest.mark.parametrize("text", DURATIONS)
def test_durations_in_every_form(site, text):
    site.put(f'id,submit,start,elapsed\n1,1700000000,1700000100,"{text}"\n')
    assert site.rows("elapsed_seconds") == [DURATIONS[text]]


LIMITS = {
    "UNLIMITED": None,
    "Partition_Limit": None,
    "4294967295": None,
    "": None,
    "90": 90,
    "2-00:00:00": 2880,
    "00:00:30": 1,
    "whatever": None,
}


@pytest.mark.parametrize("text", LIMITS)
def test_limits_in_every_form(site, text):
    site.put(f"id,submit,start,end,Timelimit\n1,1700000000,1700000100,1700000200,{text}\n")
    assert site.rows("limit_minutes") == [LIMITS[text]]


def test_numbers_of_slurm_s_states_and_words_of_others(site):
    words = ["3", "4", "11", "1025", "Succeeded", "failed", "CANCELLED by 12", "OUT_OF_ME+", "CD"]
    rows = [f"{n},1700000000,1700000001,1700000002,{word}" for n, word in enumerate(words)]
    site.put("\n".join(["id,submit,start,end,state", *rows]))
    assert site.rows("state") == [
        *("COMPLETED", "CANCELLED", "OUT_OF_MEMORY", "RUNNING", "COMPLETED", "FAILED"),
        *("CANCELLED", "OUT_OF_MEMORY", "COMPLETED"),
    ]


MAPPING = """
delimiter = ";"
timezone = "Europe/Oslo"
[columns]
id = "Auftrag"
submit = "abgegeben"
wait = "gewartet"
elapsed = "gelaufen"
state = "Ende"
gpus = "Karten (‰)"
limit = "Grenze"
[constants]
cluster = "nord"
partition = "lang"
[units]
wait = "minutes"
elapsed = "hours"
limit = "days"
[factors]
gpus = 0.001
[times]
format = "%d.%m.%Y %H:%M"
[states]
"gut gegangen" = "COMPLETED"
"9" = ""
"""


def test_a_mapping_file_says_what_is_what(site):
    text = (
        "Auftrag;abgegeben;gewartet;gelaufen;Ende;Karten (‰);Grenze\n"
        "17;01.07.2025 12:00;90;2.5;gut gegangen;1500;2\n"
        "18;01.07.2025 12:00;0;1;9;500;1\n"
    )
    report = site.put(text, mapping=MAPPING)
    assert counts(report) == (2, 0, 0, 0, 0)
    assert site.rows("submit_time", "start_time", "elapsed_seconds", "state", "gpus") == [
        (at("2025-07-01 10:00"), at("2025-07-01 11:30"), 9000, "COMPLETED", 2),
        (at("2025-07-01 10:00"), at("2025-07-01 10:00"), 3600, None, 1),
    ]
    assert site.rows("cluster", "partition", "limit_minutes")[0] == ("nord", "lang", 2880)


def test_a_column_that_is_not_there_or_a_file_that_says_too_little_is_refused(site):
    with pytest.raises(BadMapping, match="no column 'when'"):
        site.put(f"{HEADER}\n{ROW}\n", mapping='[columns]\nsubmit = "when"')
    with pytest.raises(BadMapping, match="submit and start"):
        site.put("a,b\n1,2\n")
    with pytest.raises(BadMapping, match="does not name columns"):
        site.put("nothing\n1\n")
    assert sets.listed(site.imports) == []


def test_a_trace_of_pods_that_counts_from_its_own_begin(site):
    """The shape of Alibaba's GPU traces of 2023."""
    text = (
        "name,cpu_milli,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\n"
        "pod-1,12000,1,1000,,LS,Running,0,12537496,0\n"
        "pod-2,6000,0,0,,BE,Succeeded,100,300,150\n"
        "pod-3,6000,2,1000,V100,BE,Pending,200,400,\n"
        "pod-4,6000,1,460,,BE,Failed,,400,300\n"
    )
    report = site.put(text)
    assert counts(report) == (3, 1, 0, 0, 0)
    columns = ("state", "group", "partition", "gpus", "start_time", "elapsed_seconds")
    assert sorted(site.rows(*columns)) == [
        ("COMPLETED", "BE", "BE", 0, at("1970-01-01 00:02:30"), 150),
        ("PENDING", "BE", "BE", 2, None, 0),
        ("RUNNING", "LS", "LS", 1, at("1970-01-01"), 12537496),
    ]


def test_a_cancel_before_the_start_in_an_old_sacct(site):
    text = (
        "JobID|User|State|Submit|Eligible|Start|End|Elapsed|NodeList|AllocTRES\n"
        "5|a|CANCELLED by 7|2016-12-01T10:00:00|2016-12-01T10:00:00|2016-12-01T11:00:00|"
        "2016-12-01T11:00:00|00:00:00|None assigned|cpu=1,gres/gpu=2\n"
        "6|a|COMPLETED|2016-12-01T10:00:00|2016-12-01T10:00:00|2016-12-01T11:00:00|"
        "2016-12-01T11:00:00|00:00:00|n1|cpu=1,gres/gpu=2\n"
        "6.batch|a|COMPLETED|2016-12-01T10:00:00|2016-12-01T10:00:00|2016-12-01T11:00:00|"
        "2016-12-01T11:00:00|00:00:00|n1|cpu=1\n"
    )
    assert counts(site.put(text)) == (2, 0, 0, 0, 1)
    assert site.rows("start_time", "end_time", "gpus") == [
        (None, at("2016-12-01 11:00"), 2),
        (at("2016-12-01 11:00"), at("2016-12-01 11:00"), 2),
    ]


LOG = """; Version: 2.2
; Computer: a made-up one
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Berlin

  1   0  10  3600 64 -1 -1 64 7200 -1 1 3 2 -1 1 -1 -1 -1
  2  60  -1    -1 -1 -1 -1 32 7200 -1 -1 4 2 -1 1 -1 -1 -1
  3  90 300     0 -1 -1 -1 32 7200 -1 5 4 2 -1 1  7 -1 -1
  4 100   5    50  8 -1 -1  8   60 -1 0 4 2 -1 2 -1 -1 -1
  4 100   5    20  8 -1 -1  8   60 -1 2 4 2 -1 2 -1 -1 -1
  5 100   5    20  8
"""


def test_a_log_of_the_parallel_workloads_archive(site):
    report = site.put(LOG, kind="swf", name="log")
    assert counts(report) == (4, 1, 0, 0, 1)
    assert site.kept[0][0].split() == ["5", "100", "5", "20", "8"]
    zero = datetime.fromtimestamp(1000000000, UTC).replace(tzinfo=None)

    def after(seconds):
        return zero + timedelta(seconds=seconds)

    assert site.rows("slurm_id", "state", "submit_time", "start_time", "end_time") == [
        (1, "COMPLETED", zero, after(10), after(3610)),
        (2, None, after(60), None, None),
        (3, "CANCELLED", after(90), None, after(390)),
        (4, "FAILED", after(100), after(105), after(155)),
    ]
    columns = ("cpus", "limit_minutes", "user", "group", "partition", "qos", "gpus")
    assert site.rows(*columns)[0] == (64, 120, "3", "2", "1", "1", None)
    assert site.rows("partition")[2] == "7"
    assert counts(site.put(LOG, kind="swf", name="again")) == (0, 1, 4, 0, 1)


def test_the_name_of_a_set(tmp_path):
    assert name_of("/a/graham 2021.csv.gz", None) == "graham-2021"
    assert name_of("-", "mine") == "mine"
    with pytest.raises(BadSetName, match="--name"):
        name_of("-", None)
    with pytest.raises(BadSetName, match="cannot be called"):
        name_of("x", "../../etc")


def test_a_file_s_name_is_no_pattern(site):
    report = site.put(f"{HEADER}\n{ROW}\n", file="[a]*'\".csv")
    assert counts(report) == (1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("drac_graham_2021.csv.gz", "drac_graham_2021"),
        ("xdmod_phillips.sacct.psv.gz", "xdmod_phillips"),
    ],
)
def test_a_real_trace_is_read_as_others_read_it(site, file, key):
    """Every figure is compared where they are made; here, that the columns hold what they need."""
    traces = Path(os.environ.get("SLUICE_TRACES", SHARED / "traces"))
    if not (traces / file).exists():
        pytest.skip(f"{traces / file} is not there")
    told = json.loads((traces / "reference.json").read_text())["traces"][key]["all"]
    report = site.put((traces / file).read_bytes())
    assert counts(report) == (told["jobs"], 0, 0, 0, 0)
    with runs(site.home / "history") as connection:
        found = connection.execute(
            "SELECT count(start_time), count(*) FILTER (gpus > 0 AND start_time IS NOT NULL),"
            " sum(epoch(start_time) - epoch(submit_time))::BIGINT,"
            " sum(elapsed_seconds) FILTER (start_time IS NOT NULL),"
            " round(sum(gpus * elapsed_seconds) / 3600, 6), round(sum(cpus * elapsed_seconds)"
            " / 3600, 6) FROM waits"
        ).fetchone()
    assert found == (
        told["started"],
        told["gpu_jobs"],
        told["wait"]["sum_s"],
        told["run"]["sum_s"],
        told["gpu_hours"],
        told["cpu_hours"],
    )


ARRAYS = "JobID|JobIDRaw|Submit|Eligible|Start|End|State|ElapsedRaw|NodeList|ReqTRES"


def array(printed, raw="900", *, state="CANCELLED by 7", end="2026-01-01T12:00:00"):
    times = f"2026-01-01T10:00:00|2026-01-01T10:00:00|None|{end}"
    return f"{printed}|{raw}|{times}|{state}|0|None assigned|gres/gpu=2"


@pytest.mark.parametrize(
    ("printed", "tasks"),
    [
        ("900_[60-89]", 30),
        ("900_[60-89%4]", 30),
        ("900_[1,3,5]", 3),
        ("900_[60-89,91-94,96-98%10]", 37),
        ("900_[0-20:5]", 5),
        ("900_[7]", 1),
    ],
)
@pytest.mark.parametrize("header", [ARRAYS, ARRAYS.replace("JobIDRaw", "Other")])
def test_an_array_that_never_started_counts_its_tasks(site, printed, tasks, header):
    """Case 5."""
    text = f"{header}\n{array(printed)}\n{array('901', '901')}\n"
    assert counts(site.put(text)) == (2, 0, 0, 0, 0)
    assert site.rows("slurm_id", "gpus", "state") == [(900, 2, "CANCELLED")] * tasks + [
        (901, 2, "CANCELLED")
    ]
    assert counts(site.put(text)) == (0, 0, 2, 0, 0)
    assert len(site.rows("slurm_id")) == tasks + 1


def test_tasks_that_ran_or_wait_stand_beside_those_that_never_did(site):
    ran = "900_1|905|2026-01-01T10:00:00|2026-01-01T10:00:00|2026-01-01T11:00:00"
    ran += "|2026-01-01T12:00:00|COMPLETED|3600|n1|gres/gpu=2"
    waits = array("910_[1-4]", "910", state="PENDING", end="Unknown")
    again = array("900_[60-89]").replace("10:00:00", "10:00:01")
    text = "\n".join([ARRAYS, array("900_[60-89]"), array("900_[60-89]"), again, ran, waits, ""])
    assert counts(site.put(text)) == (4, 0, 0, 1, 0)
    assert len(site.rows("slurm_id", where="end_time IS NULL")) == 4
    assert len(site.rows("slurm_id", where="start_time IS NULL AND end_time IS NOT NULL")) == 60
    assert site.rows("slurm_id", where="start_time IS NOT NULL") == [905]


@pytest.mark.parametrize("printed", ["900_[1,3,5,7,...]", "900_[9-1]", "900_[0-99999999]"])
def test_a_list_of_tasks_that_tells_no_number_is_held(site, printed):
    report = site.put(f"{ARRAYS}\n{array(printed)}\n{array('901', '901')}\n")
    assert counts(report) == (1, 1, 0, 0, 0)
    assert "no whole list of tasks" in site.kept[0][1]
    assert printed in site.kept[0][0]


def test_brackets_of_other_systems_are_part_of_an_id(site):
    text = f"{ARRAYS}\n{array('900[60]', '900[60]')}\n{array('900[61].pbs', '900[61].pbs')}\n"
    assert counts(site.put(text)) == (2, 0, 0, 0, 0)
    assert len(set(site.rows("slurm_id"))) == 2
