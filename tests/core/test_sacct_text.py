"""Text that sacct printed, and text that a user chose to stand in it."""

import gzip
import json
import re
import statistics
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.sacct_frames import Dump, Held, NoHeader, Step
from gateway.core.sacct_text import MissingColumns, SacctRow

SHARED = Path(__file__).resolve().parents[3] / "shared"
TRACE = SHARED / "traces" / "xdmod_phillips.sacct.psv.gz"
SAMPLES = SHARED / "sacct-samples"
HERE = ZoneInfo("UTC")

FIELDS = {
    "JobID": "50",
    "JobIDRaw": "50",
    "User": "nlp-1",
    "UID": "20002",
    "Account": "nlp",
    "Partition": "a100",
    "QOS": "normal",
    "JobName": "train",
    "State": "COMPLETED",
    "Submit": "2026-03-02T08:30:00",
    "Eligible": "2026-03-02T08:30:00",
    "Start": "2026-03-02T09:00:00",
    "End": "2026-03-02T15:00:00",
    "ElapsedRaw": "21600",
    "Timelimit": "10:00:00",
    "NNodes": "1",
    "NCPUS": "16",
    "ExitCode": "0:0",
    "AllocTRES": "cpu=16,gres/gpu:a100=8,gres/gpu=8,node=1",
    "ReqTRES": "cpu=16,gres/gpu=8,node=1",
    "NodeList": "a100-1",
}
NAME_LAST = [*(name for name in FIELDS if name != "JobName"), "JobName"]


def lines(*records, columns=tuple(FIELDS), delimiter="|", **fields):
    """A dump's text, split as a reader would. `fields` are the first record's."""
    first, *others = records or [{}]
    rows = [FIELDS | fields | first, *(FIELDS | record for record in others)]
    texts = [delimiter.join(row.get(name, "") for name in columns) for row in rows]
    return "\n".join([delimiter.join(columns), *texts]).split("\n")


def read(text, *, zone=HERE, delimiter=None):
    dump = Dump(iter(text), zone=zone, delimiter=delimiter)
    items = list(dump)
    assert dump.records == len(items)
    return items


def one(*, zone=HERE, columns=tuple(FIELDS), **fields):
    (row,) = read(lines(columns=columns, **fields), zone=zone)
    assert isinstance(row, SacctRow), row
    return row


def at(clock):
    return datetime.fromisoformat(f"2026-03-02T{clock}").replace(tzinfo=UTC)


def test_a_plain_record_gives_each_field():
    row = one()
    assert (row.job_id, row.user, row.uid, row.name) == (50, "nlp-1", 20002, "train")
    assert (row.submit_time, row.start_time, row.end_time) == (
        at("08:30:00"),
        at("09:00:00"),
        at("15:00:00"),
    )
    assert (row.elapsed_seconds, row.time_limit_minutes) == (21600, 600)
    assert (row.exit_code, row.exit_signal, row.nodes, row.cpus) == (0, None, 1, 16)


def test_the_order_of_columns_is_free_and_unknown_ones_are_ignored():
    columns = ["MaxRSS", *reversed(FIELDS), "Colour"]
    assert one(columns=columns) == one()


def test_missing_columns_are_named_together():
    with pytest.raises(MissingColumns) as error:
        read(["JobID|State|Elapsed", "1|COMPLETED|00:00:01"])
    assert error.value.names == (
        "User",
        "Account",
        "Partition",
        "Submit",
        "Start",
        "End",
        "AllocTRES",
    )


@pytest.mark.parametrize("text", [[], [""], ["hello"], ["12|13|14"], ["a dump of jobs"]])
def test_a_file_without_a_header_is_told(text):
    with pytest.raises(NoHeader):
        read(text)


@pytest.mark.parametrize("delimiter", ["|#", "|", ";", "\t", "^^", "@@|@@", ",", "~|~"])
def test_the_separator_is_seen_in_the_header(delimiter):
    if delimiter == ",":
        pytest.skip("a resource list holds commas")
    assert read(lines(delimiter=delimiter)) == [one()]


def test_a_separator_of_letters_is_given():
    assert read(lines(delimiter="xSEPx"), delimiter="xSEPx") == [one()]


def test_a_line_that_ends_with_a_separator_as_sacct_p_prints_it():
    assert read([line + "|" for line in lines()]) == [one()]


@pytest.mark.parametrize(
    ("printed", "minutes"),
    [
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("2-00:00:00", 2880),
        ("", None),
        ("rubbish", None),
        ("125-00:00:00", 180_000),
    ],
)
def test_a_time_limit_in_words_is_never_zero(printed, minutes):
    """Case 1: one unreadable field is unknown, and the import goes on."""
    assert one(Timelimit=printed).time_limit_minutes == minutes


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        ("1-02:03:04", 93_784),
        ("02:03:04", 7384),
        ("03:04.500", 184),
        ("00:00:00", 0),
        ("10-00:00:00", 864_000),
    ],
)
def test_durations_of_every_shape(printed, seconds):
    columns = [name.replace("ElapsedRaw", "Elapsed") for name in FIELDS]
    assert one(columns=columns, Elapsed=printed).elapsed_seconds == seconds


def test_raw_columns_come_first():
    columns = [*FIELDS, "Elapsed", "TimelimitRaw"]
    row = one(columns=columns, Elapsed="1-00:00:00", TimelimitRaw="90")
    assert (row.elapsed_seconds, row.time_limit_minutes) == (21600, 90)


def test_an_unreadable_duration_is_taken_from_the_times():
    assert one(ElapsedRaw="?").elapsed_seconds == 6 * 3600


def test_a_time_may_be_an_epoch():
    epoch = str(int(at("08:30:00").timestamp()))
    assert one(Submit=epoch).submit_time == at("08:30:00")


def test_naive_times_are_local_and_the_double_hour_is_told_by_the_elapsed_time():
    """2026-11-01 01:30 comes twice in New York."""
    zone = ZoneInfo("America/New_York")
    night = {"Submit": "2026-11-01T00:10:00", "Eligible": "2026-11-01T00:10:00"}
    night |= {"Start": "2026-11-01T00:30:00", "End": "2026-11-01T01:30:00"}
    early = one(zone=zone, ElapsedRaw="3600", **night)
    late = one(zone=zone, ElapsedRaw="7200", **night)
    assert early.end_time == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert late.end_time == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    summer = one(zone=zone, Submit="2026-07-01T08:00:00")
    assert summer.submit_time == datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("printed", "raw", "job_id", "array_id", "task"),
    [
        ("123", "123", 123, None, None),
        ("123_4", "127", 127, 123, 4),
        ("123_[1-5%2]", "123", 123, 123, None),
        ("123_[1,3,5,7,...]", "123", 123, 123, None),
        ("123+0", "123", 123, None, None),
        ("123+1", "", 124, None, None),
        ("900_[60-89,91-94,96-98%10]", "", 900, 900, None),
    ],
)
def test_forms_of_job_ids(printed, raw, job_id, array_id, task):
    """Case 5."""
    row = one(JobID=printed, JobIDRaw=raw)
    assert (row.job_id, row.array_job_id, row.array_task) == (job_id, array_id, task)


@pytest.mark.parametrize(
    "printed", ["123.batch", "123.0", "123_4.extern", "123+1.0", "9.interactive"]
)
def test_steps_are_no_jobs(printed):
    assert read(lines(JobID=printed, JobIDRaw=printed, User="", Submit="")) == [Step()]


@pytest.mark.parametrize(
    "fields",
    [
        {"JobID": "abc", "JobIDRaw": "abc"},
        {"JobID": "123_4", "JobIDRaw": ""},
        {"JobID": "0", "JobIDRaw": "0"},
        {"State": "SOMETHING"},
        {"Submit": "yesterday"},
        {"Submit": "2026-13-40T00:00:00"},
        {"User": ""},
    ],
)
def test_a_record_without_its_key_is_held_with_its_text(fields):
    text = lines({}, {"JobID": "51", "JobIDRaw": "51"} | fields, {"JobID": "52", "JobIDRaw": "52"})
    before, held, row = read(text)
    assert (type(held), held.raw) == (Held, text[2])
    assert (before.job_id, row.job_id) == (50, 52)


def test_who_cancelled_it():
    row = one(State="CANCELLED by 380693", ExitCode="0:9")
    assert (row.state, row.cancelled_by) == ("CANCELLED", "380693")
    assert (row.exit_code, row.exit_signal) == (0, 9)


def test_an_exit_code_that_is_none_is_unknown():
    row = one(ExitCode="0:oops")
    assert (row.exit_code, row.exit_signal) == (None, None)


@pytest.mark.parametrize("state", ["CANCELLED by 60112", "DEADLINE"])
@pytest.mark.parametrize("start", ["None", "Unknown", "2026-03-02T10:42:10"])
def test_a_job_cancelled_while_pending_never_started(state, start):
    """Case 4; the third is what sacct of 17.02 wrote."""
    row = one(
        State=state,
        Submit="2026-03-02T10:30:00",
        Start=start,
        End="2026-03-02T10:42:10",
        ElapsedRaw="0",
        NodeList="None assigned",
        AllocTRES="cpu=8,gres/gpu=4" if start.startswith("2") else "",
    )
    assert (row.start_time, row.elapsed_seconds, row.alloc_tres) == (None, 0, "")
    assert (row.end_time, row.node_list) == (at("10:42:10"), None)


def test_a_short_job_on_a_node_did_start():
    row = one(
        State="FAILED", Start="2026-03-02T09:00:00", End="2026-03-02T09:00:00", ElapsedRaw="0"
    )
    assert row.start_time == at("09:00:00")


def test_open_jobs_have_no_end_whatever_stands_there():
    assert one(State="RUNNING", End="Unknown").end_time is None
    assert one(State="RUNNING", End="2026-03-02T09:00:00").end_time is None
    pending = one(State="PENDING", Start="Unknown", End="2026-03-02T09:00:00", ElapsedRaw="0")
    assert (pending.start_time, pending.end_time) == (None, None)


@pytest.mark.parametrize("columns", [tuple(FIELDS), NAME_LAST])
@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "x|COMPLETED|00:00:00|0",
        "run\r",
        "two\nlines",
        "two\n\nlines",
        "|",
        "||||||||||||||||||||||||||||||||||||",
        "a|b\nc|d",
        "'; DROP TABLE job",
    ],
)
def test_separators_in_a_name_shift_nothing(name, columns):
    """Case 13: 8 GPUs, 6 hours, each time, and the next record is whole."""
    row, after = read(lines({}, {"JobID": "51", "JobIDRaw": "51"}, columns=columns, JobName=name))[
        :2
    ]
    assert (row.name, row.elapsed_seconds, row.state) == (name, 6 * 3600, "COMPLETED")
    assert row.alloc_tres == FIELDS["AllocTRES"]
    assert after.job_id == 51


def test_a_directory_with_a_separator_and_a_comment_of_two_lines():
    columns = [*FIELDS, "WorkDir", "End2"]
    assert one(columns=columns, WorkDir="d|1").working_directory == "d|1"
    columns = ["JobID", "Comment", *list(FIELDS)[1:], "WorkDir"]
    row = one(columns=columns, Comment="two\nlines", WorkDir="/home/nlp-1")
    assert (row.comment, row.working_directory) == ("two\nlines", "/home/nlp-1")


def test_two_texts_side_by_side_cannot_be_told_apart():
    columns = [*FIELDS, "Comment"]
    columns.remove("JobName")
    columns.insert(3, "JobName")
    columns.remove("Comment")
    columns.insert(4, "Comment")
    text = lines(columns=columns, JobName="a|b", Comment="c")
    (held,) = read(text)
    assert isinstance(held, Held)
    assert held.raw == text[1]


def test_a_forged_record_behind_a_line_break_is_held_with_what_it_belongs_to():
    forged = "|".join((FIELDS | {"JobID": "777", "JobIDRaw": "777", "User": "victim"}).values())
    text = lines({}, {"JobID": "51", "JobIDRaw": "51"}, JobName=f"x\n{forged}\ny")
    items = read(text)
    assert [row.job_id for row in items if isinstance(row, SacctRow)] == [51]
    held = "\n".join(item.raw for item in items if isinstance(item, Held))
    assert held == "\n".join(text[1:4])


def test_a_forged_beginning_behind_a_line_break_is_held():
    text = lines({}, {"JobID": "51", "JobIDRaw": "51"}, JobName="x\n777|777|victim|0|g|p|q|y")
    items = read(text)
    assert [row.job_id for row in items if isinstance(row, SacctRow)] == [51]


@pytest.mark.parametrize("columns", [tuple(FIELDS), NAME_LAST])
def test_a_line_that_was_cut_is_held_and_costs_no_other(columns):
    text = lines(
        {}, {"JobID": "51", "JobIDRaw": "51"}, {"JobID": "52", "JobIDRaw": "52"}, columns=columns
    )
    cut = text[2][: -len(FIELDS["NodeList"]) - 20]
    items = read([text[0], text[1], cut, text[3]])
    assert [row.job_id for row in items if isinstance(row, SacctRow)] == [50, 52]
    assert [item.raw for item in items if isinstance(item, Held)] == [cut]


def test_dumps_put_one_behind_the_other():
    assert len(read([*lines(), *lines(JobID="51", JobIDRaw="51"), ""])) == 2


def test_lines_that_end_in_cr_lf():
    text = [line + "\r" for line in lines(columns=NAME_LAST)]
    assert read(text) == read(lines(columns=NAME_LAST))


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
PIECES = st.lists(
    st.one_of(TEXT, st.sampled_from(["|", "\n", "\r", "COMPLETED", "50", "0:0", "None", "||", ""])),
    max_size=12,
).map("".join)


@settings(deadline=None)
@given(PIECES, st.sampled_from([tuple(FIELDS), tuple(NAME_LAST)]))
def test_any_name_comes_back_whole_or_is_held(name, columns):
    follower = {"JobID": "51", "JobIDRaw": "51", "JobName": "next"}
    items = read(lines({"JobName": name}, follower, columns=columns))
    plain = one()._replace(name=name)
    after = one(JobID="51", JobIDRaw="51", JobName="next")
    for item in items:
        assert isinstance(item, Held) or item in {plain, after}
    if not any(isinstance(item, Held) for item in items):
        assert items == [plain, after]


@settings(deadline=None)
@given(st.text(max_size=30), st.sampled_from(sorted(FIELDS)))
def test_no_text_in_any_column_raises(text, name):
    read(lines(**{name: text.replace("\0", "")}))


def opened(path):
    if not path.exists():
        pytest.skip(f"no {path.name} beside this checkout")
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as file:
            return file.read().removesuffix("\n").split("\n")
    return path.read_text(errors="backslashreplace").removesuffix("\n").split("\n")


def test_the_real_trace_gives_the_figures_of_its_reference():
    rows = read(opened(TRACE), zone=ZoneInfo("America/New_York"))
    reference = json.loads((SHARED / "traces" / "reference.json").read_text())
    known = reference["traces"]["xdmod_phillips"]["all"]
    started = [row for row in rows if row.start_time]
    waits = [(row.start_time - row.submit_time).total_seconds() for row in started]
    assert (len(rows), len(rows) - len(started)) == (4285, 239)
    assert statistics.mean(waits) == pytest.approx(known["wait"]["mean_s"])
    assert statistics.median(waits) == known["wait"]["median_s"]
    assert Counter(row.state for row in rows)["CANCELLED"] == 243
    assert all(row.time_limit_minutes for row in rows)


XDMOD = (
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|"
    "Elapsed|ExitCode|State|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName"
)


def test_sample_of_arrays():
    text = opened(SAMPLES / "ubccr__xdmod" / "accounting-logs-with-job-arrays.log")
    rows = read([XDMOD, *text])
    assert [row.array_task for row in rows] == [100, *[None] * (len(text) - 1)]
    assert {row.array_job_id for row in rows} == {4103947}


def test_sample_of_open_jobs():
    text = opened(SAMPLES / "ubccr__xdmod" / "non-ended-job-state.log")
    running, pending = read([XDMOD, *text])
    assert (running.state, running.end_time, running.elapsed_seconds) == ("RUNNING", None, 81_142)
    assert (pending.state, pending.start_time, pending.end_time) == ("PENDING", None, None)


def test_sample_with_a_line_break_in_a_text():
    text = opened(SAMPLES / "facebookresearch__gcm" / "sample-sacct-one-multiline.txt")
    items = read(text)
    kinds = [type(item).__name__ for item in items]
    assert kinds == ["Step", "SacctRow", "SacctRow", "Step"]
    assert [item.job_id for item in items if isinstance(item, SacctRow)] == [201729, 201844]


def test_sample_with_bytes_that_are_no_text():
    text = opened(SAMPLES / "facebookresearch__gcm" / "sample-sacct-output-invalid-utf8.txt")
    items = read(text)
    assert not [item for item in items if isinstance(item, Held)]


def test_sample_without_needed_columns():
    with pytest.raises(MissingColumns, match=re.escape("User, Account")):
        read(opened(SAMPLES / "tdhock__slurm" / "sacct-multistep.txt"))


SONAR = (
    "JobID|JobIDRaw|User|Account|State|Start|End|AveCPU|AveDiskRead|AveDiskWrite|AveRSS|AveVMSize|"
    "Priority|ExitCode|Layout|MaxRSS|MaxVMSize|MinCPU|ReqCPUS|ReqMem|ReqNodes|Reservation|Submit|"
    "Suspended|SystemCPU|TimelimitRaw|UserCPU|NodeList|Partition|AllocTRES|MinCPUTask|JobName"
)


def test_sample_of_a_gpu_cluster_with_steps():
    text = opened(SAMPLES / "NordicHPC__sonar" / "tests_testdata_sacct_output.txt")
    items = read([SONAR, *text])
    kinds = Counter(type(item).__name__ for item in items)
    assert kinds == {"SacctRow": 122, "Step": 179}
    states = Counter(item.state for item in items if isinstance(item, SacctRow))
    assert states == {
        "COMPLETED": 49, "RUNNING": 32, "PENDING": 31, "CANCELLED": 5, "TIMEOUT": 3, "FAILED": 2
    }  # fmt: skip
