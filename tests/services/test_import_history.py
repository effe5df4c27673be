"""A dump of years into the store: the same rows as the worker makes, none dropped, none twice."""

import gzip
import json
import statistics
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from gateway.services import import_feed, ingest_new, ingest_plan, link
from gateway.services.import_feed import BadHistory, Source, batches, feed
from gateway.services.import_history import import_history
from gateway.store import history_rows
from gateway.store import models as t
from gateway.store.squeezed import expand_jobs, expand_runs, squeeze_jobs, squeeze_runs
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.wire import messages as m

ASKED = {"user": "nlp-1"}
NOW = datetime(2026, 3, 2, 16, 0, tzinfo=UTC)
SHARED = Path(__file__).resolve().parents[3] / "shared"
TRACE = SHARED / "traces" / "xdmod_phillips.sacct.psv.gz"
COLUMNS = (
    "JobID|JobIDRaw|Comment|Cluster|User|UID|Account|Partition|QOS|State|Submit|Eligible|Start|End|"
    "Elapsed|NNodes|NCPUS|AllocTRES|ReqTRES|NodeList|ExitCode|Restarts|JobName"
)
PLAIN = (
    "50|50||alpha|nlp-1|20002|nlp|a100|normal|COMPLETED|2026-03-02T08:30:00|2026-03-02T08:30:00|"
    "2026-03-02T09:00:00|2026-03-02T15:00:00|06:00:00|1|16|gres/gpu=8|gres/gpu=8|a100-1|0:0|0|n"
)


def line(**fields):
    row = dict(zip(COLUMNS.split("|"), PLAIN.split("|"), strict=True)) | fields
    if "JobID" in fields and "JobIDRaw" not in fields:
        row["JobIDRaw"] = row["JobID"]
    return "|".join(row.values())


@pytest.fixture
def put(begin, tmp_path):
    def _put(*lines, header=COLUMNS, read=batches, **values):
        path = tmp_path / "dump.psv"
        path.write_text("\n".join([header, *lines, ""]))
        return import_history(read(source(path, **values)), begin=begin, now=NOW)

    return _put


def source(path, **values):
    facts = {"zone": "UTC", "home": "home", "cluster": None, "delimiter": None, "now": NOW}
    return Source(path=str(path), **(facts | values))


def rows(begin, kind):
    with begin() as session:
        return list(session.scalars(select(kind).order_by(kind.id)))


def test_an_ended_job_becomes_a_job_and_a_run_to_settle(begin, put):
    report = put(line())
    (job,), (run,) = rows(begin, t.Job), rows(begin, t.Run)
    assert (report.records, report.stored, report.changed, report.ties) == (1, 1, 2, True)
    assert (job.cluster, job.slurm_id, job.state, job.active) == ("alpha", 50, "COMPLETED", False)
    assert (job.accounted, job.seen_at, job.gpus) == (True, NOW, 8)
    assert (run.job_id, run.gpus * run.elapsed_seconds, run.to_settle) == (job.id, 48 * 3600, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"NCPUS": "4294967296"},
        {"AllocTRES": "gres/gpu=99999999999"},
        {"ReqTRES": "gres/gpu=99999999999999999999", "AllocTRES": ""},
    ],
)
def test_a_row_with_a_number_that_no_database_keeps_is_held_and_stops_no_other(begin, put, fields):
    report = put(line(**fields), line(JobID="51"))
    assert (report.records, report.stored, report.held, report.ties) == (2, 1, 1, True)
    assert [job.slurm_id for job in rows(begin, t.Job)] == [51]


def test_repeating_an_import_changes_nothing(begin, put):
    """Case 20."""
    dump = [line(), line(JobID="51", State="CANCELLED by 7", Start="None", Elapsed="00:00:00")]
    put(*dump)
    assert put(*dump).changed == 0
    assert (len(rows(begin, t.Job)), len(rows(begin, t.Run))) == (2, 1)


def test_a_job_over_the_edge_of_two_dumps_is_one_run(begin, put):
    """Case 12."""
    night = {"Start": "2026-01-31T22:00:00", "End": "2026-02-01T04:00:00"}
    night |= {"Submit": "2026-01-31T22:00:00"}
    for _ in ("january", "february"):
        put(line(**night))
    (run,) = rows(begin, t.Run)
    assert run.gpus * run.elapsed_seconds == 48 * 3600


def test_a_preempted_job_has_two_runs_under_one_row(begin, put):
    """Case 6, its rows far from each other in the file."""
    first = line(State="PREEMPTED", End="2026-03-02T10:00:00", Elapsed="01:00:00")
    second = line(
        Submit="2026-03-02T10:00:00",
        Eligible="2026-03-02T10:02:00",
        Start="2026-03-02T12:00:00",
        Elapsed="03:00:00",
        Restarts="1",
    )
    put(second, *[line(JobID=str(n)) for n in range(100, 110)], first)
    (job,) = [job for job in rows(begin, t.Job) if job.slurm_id == 50]
    assert [run.elapsed_seconds for run in rows(begin, t.Run) if run.job_id == job.id] == [
        3600,
        10800,
    ]
    assert (job.submit_time.hour, job.last_submit_time.hour, job.state) == (8, 10, "COMPLETED")


def test_a_running_job_stays_open_and_is_ended_by_a_later_dump(begin, put):
    put(line(State="RUNNING", End="Unknown"))
    (job,), (run,) = rows(begin, t.Job), rows(begin, t.Run)
    assert (job.active, job.accounted, run.end_time, run.to_settle) == (True, False, None, False)
    put(line())
    (job,), (run,) = rows(begin, t.Job), rows(begin, t.Run)
    assert (job.active, job.accounted, run.end_time.hour, run.to_settle) == (False, True, 15, True)


def test_a_job_that_never_started_has_no_run(begin, put):
    """Case 4."""
    put(line(State="DEADLINE", Start="None", Elapsed="00:00:00", NodeList="None assigned"))
    (job,) = rows(begin, t.Job)
    assert (job.state, job.start_time, job.gpus, rows(begin, t.Run)) == ("DEADLINE", None, 8, [])


@pytest.mark.parametrize(
    ("alloc", "gpus"),
    [
        ("gres/gpu:a100=8,gres/gpu=8,cpu=64", 8),
        ("gres/gpu:a100=2", 2),
        ("gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1", 3),
        ("gres/gpumem=40G,gres/gpuutil=87,gres/gpu=1", 1),
        ("cpu=16,mem=64G,node=1,billing=16", None),
        ("1=64,4=1,1001=8,1002=8", None),
    ],
)
def test_gpus_are_counted_once_or_unknown(begin, put, alloc, gpus):
    """Cases 7 and 8."""
    put(line(AllocTRES=alloc))
    assert rows(begin, t.Run)[0].gpus == gpus


@pytest.mark.parametrize("name", ["a|b", "x|COMPLETED|00:00:00|0", "run\r", "two\nlines"])
def test_a_name_with_separators_is_charged_as_any_other(begin, put, name):
    """Case 13."""
    put(line(JobName=name), line(JobID="51"))
    job, run = rows(begin, t.Job)[0], rows(begin, t.Run)[0]
    assert (job.name, run.gpus * run.elapsed_seconds) == (name, 48 * 3600)


def test_what_cannot_be_understood_is_held_once_and_fails_nothing(begin, put):
    dump = [line(State="WEIRD"), line(JobID="51"), line(JobID="52.batch"), "53|53|al"]
    for newly in (2, 0):
        report = put(*dump)
        assert (report.records, report.stored, report.steps, report.held) == (4, 1, 1, 2)
        assert (report.newly_held, report.ties) == (newly, True)
    assert [row.raw for row in rows(begin, t.HeldRow)] == [dump[0], dump[3]]


@pytest.mark.parametrize(
    ("printed", "tasks"),
    [("900_[60-89]", 30), ("900_[60-89%4]", 30), ("900_[1,3,5]", 3), ("900_[1,3,...]", 1)],
)
def test_an_array_that_never_started_counts_its_tasks(begin, put, printed, tasks):
    """Case 5. In the columns of the history, as arrays that the poll saw."""
    never = {"Start": "None", "State": "CANCELLED by 7", "NodeList": "None assigned"}
    put(line(JobID=printed, JobIDRaw="900", Elapsed="00:00:00", AllocTRES="", **never))
    (job,) = rows(begin, t.Job)
    assert (job.slurm_id, job.array_job_id, job.start_time) == (900, 900, None)
    with begin() as session:
        assert [times for _, times in history_rows.rows(session, 0, now=NOW)] == [tasks]


def test_two_tasks_under_one_id_are_not_taken_for_one(begin, put):
    report = put(line(JobID="50_1", JobIDRaw="50"), line(JobID="50_2", JobIDRaw="50"))
    assert (report.stored, report.held) == (1, 1)


def test_clusters_are_kept_apart_or_named_by_hand(begin, put):
    put(line(), line(Cluster="beta"), line(Cluster=""))
    assert [job.cluster for job in rows(begin, t.Job)] == ["alpha", "beta", "home"]
    put(line(JobID="60"), line(JobID="61", Cluster="beta"), cluster="gamma")
    assert [job.cluster for job in rows(begin, t.Job)][3:] == ["gamma", "gamma"]


def test_a_job_of_the_portal_is_found_by_its_token(begin, put):
    person = b.add_person(begin, unix_user="nlp-1")
    asked = datetime(2026, 3, 2, 8, 29, tzinfo=UTC)
    token = "0123456789abcdef"
    b.add_submission(begin, person, token=token, state="unknown", created_at=asked, request=ASKED)
    put(line(Comment=f"sluice:{token}"))
    (submission,) = rows(begin, t.Submission)
    assert (submission.state, submission.job_id) == ("accepted", rows(begin, t.Job)[0].id)


def test_a_file_without_needed_columns_stores_nothing(begin, put):
    with pytest.raises(BadHistory, match="User, Account, Partition"):
        put("1|COMPLETED", header="JobID|State")
    with pytest.raises(BadHistory, match="does not name columns"):
        put("2|COMPLETED", header="1|COMPLETED")


def test_text_in_utf_16_is_refused_by_its_name(begin, tmp_path):
    path = tmp_path / "dump.psv"
    path.write_text(f"{COLUMNS}\n{line()}\n", "utf-16")
    with pytest.raises(BadHistory, match=r"UTF-16.*save it as UTF-8"):
        import_history(batches(source(path)), begin=begin, now=NOW)


def test_a_file_that_breaks_off_is_told(begin, tmp_path):
    path = tmp_path / "dump.gz"
    rows = [line(JobID=str(number)) for number in range(100, 200)]
    path.write_bytes(gzip.compress("\n".join([COLUMNS, *rows]).encode())[:-30])
    report = import_history(batches(source(path)), begin=begin, now=NOW)
    assert "ends in the middle" in str(report.cut)
    assert (report.ties, report.held) == (True, 1)
    assert 50 < report.stored < 100


def test_the_reading_process_gives_the_same(begin, put, tmp_path):
    """Earns its half second: the import runs this way."""
    report = put(line(), line(JobID="51", JobName="a|b"), "53|53|al", read=feed)
    assert (report.records, report.stored, report.held, report.ties) == (3, 2, 1, True)
    with pytest.raises(BadHistory, match="AllocTRES"):
        put("1", header="JobID|State", read=feed)
    with pytest.raises(BadHistory, match="No such file"):
        import_history(feed(source(tmp_path / "absent")), begin=begin, now=NOW)


def test_a_long_file_into_an_empty_store_keeps_every_index(begin, put, monkeypatch):
    monkeypatch.setattr(import_feed, "ROWS", 10)
    before = indexes(begin)
    report = put(*[line(JobID=str(1000 + n // 2), Restarts=str(n % 2)) for n in range(200)])
    assert (report.stored, report.ties) == (200, True)
    assert indexes(begin) == before
    assert len(rows(begin, t.Job)) == 100


def test_a_long_import_that_fails_leaves_all_as_it_was(begin, put, monkeypatch):
    monkeypatch.setattr(import_feed, "ROWS", 10)
    before = indexes(begin)

    def broken(given):
        for count, batch in enumerate(batches(given)):
            if count == 6:
                raise OSError("gone")
            yield batch

    with pytest.raises(OSError, match="gone"):
        put(*[line(JobID=str(1000 + n)) for n in range(200)], read=broken)
    assert indexes(begin) == before
    # All or none on SQLite; elsewhere whole batches.
    assert len(rows(begin, t.Job)) in {0, 60}


def indexes(begin):
    with begin() as session:
        return {
            (table.name, index["name"])
            for table in (t.Job.__table__, t.Run.__table__)
            for index in _inspected(session, table.name)
        }


def _inspected(session, name):
    from sqlalchemy import inspect

    return inspect(session.connection()).get_indexes(name)


def test_the_real_trace_gives_the_figures_of_its_reference(begin):
    """The trap: 239 jobs were cancelled while pending, with a start and nodes on record."""
    if not TRACE.exists():
        pytest.skip("no traces beside this checkout")
    given = source(TRACE, zone="America/New_York")
    report = import_history(batches(given), begin=begin, now=NOW)
    assert (report.records, report.stored, report.held, report.ties) == (4285, 4285, 0, True)
    known = json.loads((SHARED / "traces" / "reference.json").read_text())
    known = known["traces"]["xdmod_phillips"]
    jobs, runs = rows(begin, t.Job), rows(begin, t.Run)
    assert (len(jobs), len(runs)) == (4285, 4046)
    assert len([job for job in jobs if job.start_time is None]) == 239
    waits = [(run.start_time - run.submit_time).total_seconds() for run in runs]
    assert statistics.mean(waits) == pytest.approx(known["all"]["wait"]["mean_s"])
    assert statistics.median(waits) == known["all"]["wait"]["median_s"]
    assert Counter(job.state for job in jobs) == {
        state: facts["jobs"] for state, facts in known["by_state"].items()
    }
    hours = sum(run.gpus * run.elapsed_seconds for run in runs) / 3600
    assert hours == pytest.approx(known["all"]["gpu_hours"])
    assert import_history(batches(given), begin=begin, now=NOW).changed == 0


# Both ways into the tables give the same tables.


def test_a_prepared_row_holds_the_whole_record():
    record = replace(RECORD, state="CANCELLED", qos=None, end_time=None, comment="a\nb")
    (job,) = ingest_new.prepare([ingest_new.values_of(record)], cluster="alpha", now=NOW).jobs
    assert ingest_new.record_of(job) == record


TIMES = st.integers(0, 40).map(lambda n: NOW - timedelta(hours=40) + timedelta(minutes=30 * n))
STATES = ["PENDING", "RUNNING", "COMPLETED", "PREEMPTED", "REQUEUED", "NODE_FAIL", "CANCELLED"]
TRES = ["", "gres/gpu=2", "gres/gpu:a100=4,gres/gpu=4", "cpu=1", "rubbish", "gres/gpu=-1"]
RECORD = m.RunRecord(
    50, "nlp-1", 2, "n", "nlp", "a100", "normal", "COMPLETED", NOW, NOW, NOW, NOW, 60, 0, 60, 1, 16,
    "", "", "a100-1", 0, None, 0, None, "/home", None,
)  # fmt: skip
RECORDS = st.lists(
    st.builds(
        lambda **values: replace(RECORD, **values),
        job_id=st.integers(50, 55),
        user=st.sampled_from(["nlp-1", "nlp-2"]),
        uid=st.sampled_from([None, 7]),
        name=st.sampled_from(["n", "x|y", ""]),
        qos=st.sampled_from([None, "normal"]),
        state=st.sampled_from([*STATES, "STRANGE", "CANCELLED by 7"]),
        submit_time=TIMES,
        eligible_time=st.none() | TIMES,
        start_time=st.none() | TIMES,
        end_time=st.none() | TIMES,
        elapsed_seconds=st.integers(-5, 100),
        time_limit_minutes=st.sampled_from([None, 0, 60]),
        alloc_tres=st.sampled_from(TRES),
        req_tres=st.sampled_from(TRES),
        node_list=st.sampled_from([None, "a100-1"]),
        exit_code=st.sampled_from([None, 0, 1]),
        exit_signal=st.sampled_from([None, 9]),
        restarts=st.integers(0, 2),
        reason=st.sampled_from([None, "Priority"]),
        comment=st.sampled_from([None, "mine", "sluice:t1", "sluice:t2 x"]),
        array_job_id=st.sampled_from([None, 50]),
        array_task=st.sampled_from([None, 0]),
        array_tasks=st.sampled_from([None, 30]),
        cancelled_by=st.sampled_from([None, "7"]),
    ),
    max_size=8,
    unique_by=lambda record: (record.job_id, record.submit_time),
)


class Enough(Exception):
    """Rolls the transaction back."""


def tables(begin: Begin, *acts):
    """What the tables hold after these acts, whatever numbers the rows have; then undone."""
    found = []
    try:
        with begin() as session:
            for act in acts:
                act(session)
            jobs = list(session.execute(select(t.Job.__table__)).mappings())
            keys = {row["id"]: (row["slurm_id"], row["submit_time"]) for row in jobs}
            found.append(sorted([_without_ids(row, keys) for row in jobs], key=repr))
            runs = session.execute(select(t.Run.__table__)).mappings()
            found.append(sorted([_without_ids(row, keys) for row in runs], key=repr))
            asked = session.execute(select(t.Submission.token, t.Submission.job_id))
            found.append(sorted((token, keys.get(job)) for token, job in asked))
            raise Enough
    except Enough:
        return found


def _without_ids(row, keys):
    return {
        name: keys[value] if name == "job_id" else value
        for name, value in row.items()
        if name != "id"
    }


def in_order(records):
    return sorted(records, key=lambda r: (r.job_id, r.submit_time, r.restarts))


@pytest.fixture
def asked(begin):
    """Two submissions whose jobs may turn up."""
    person = b.add_person(begin, unix_user="nlp-1")
    for token in ("t1", "t2"):
        when = NOW - timedelta(hours=30)
        b.add_submission(
            begin, person, token=token, state="unknown", created_at=when, request=ASKED
        )


@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(earlier=RECORDS, records=RECORDS)
def test_the_fast_way_and_the_general_way_give_the_same_tables(begin, asked, earlier, records):
    earlier, records = in_order(earlier), in_order(records)
    names = {"cluster": "alpha", "now": NOW}

    def general(given):
        def act(session):
            ingest_plan.apply_one_by_one(session, given, **names)
            link.link(session, ingest_plan._sightings(given), **names)

        return act

    def fast(given):
        return lambda session: ingest_plan.apply(session, given, **names)

    def prepared(given):
        made = ingest_new.prepare(map(ingest_new.values_of, given), **names)
        ids = Counter(record.job_id for record in given)
        several = {job_id for job_id, count in ids.items() if count > 1}
        jobs, runs = squeeze_jobs(made.jobs), squeeze_runs(made.runs)
        assert expand_jobs(jobs) == made.jobs
        assert expand_runs(runs) == made.runs
        return lambda session: ingest_plan.apply_prepared(
            session, jobs, runs, several=several, **names
        )

    right = tables(begin, general(earlier), general(records))
    assert tables(begin, fast(earlier), fast(records)) == right
    assert tables(begin, prepared(earlier), prepared(records)) == right
