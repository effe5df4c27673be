"""Slurm's reasons as causes of a wait, and a wait's seconds split among them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reasons import REASONS
from gateway.core.wait_causes import HELD_BY_GATE, LOOK_S, Cause, cause_at, cause_of, split
from gateway.core.wait_doubts import Around, is_in_doubt, told_apart
from gateway.testing import builders as b
from gateway.wire import policy as p

# Each word of Slurm 26.05, chosen by hand; {} is what is limited.
WORDS = {
    Cause.DEFERRAL: "Dependency DependencyNeverSatisfied JobHeldUser JobHeldAdmin"
    " JobHoldMaxRequeue BeginTime",
    Cause.ARRAY_THROTTLE: "JobArrayTaskLimit",
    Cause.USER_LIMIT: "QOSMax{}PerUser QOSMax{}PerUserLimit Max{}RunMinsPerUser"
    " QOSMaxJobsPerUserLimit QOSMaxSubmitJobPerUserLimit",
    Cause.GROUP_LIMIT: "AssocGrp{} AssocGrp{}Limit AssocGrp{}Minutes AssocGrp{}MinutesLimit"
    " AssocGrp{}RunMinutes AssocGrp{}RunMinutesLimit AssocMax{}PerJob AssocMax{}PerJobLimit"
    " AssocMax{}PerNode AssocMax{}MinutesPerJob AssocMax{}MinutesPerJobLimit Max{}PerAccount"
    " Max{}RunMinsPerAccount MaxJobsPerAccount MaxSubmitJobsPerAccount AssocGrpJobsLimit"
    " AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxJobsLimit AssocMaxSubmitJobLimit"
    " AssocMaxWallDurationPerJobLimit AssociationJobLimit AssociationResourceLimit"
    " AssociationTimeLimit",
    Cause.QOS_LIMIT: "QOSGrp{} QOSGrp{}Limit QOSGrp{}Minutes QOSGrp{}MinutesLimit"
    " QOSGrp{}RunMinutes QOSGrp{}RunMinutesLimit QOSMax{}PerJob QOSMax{}PerJobLimit"
    " QOSMax{}PerNode QOSMax{}MinutesPerJob QOSMax{}MinutesPerJobLimit QOSMin{}"
    " QOSMin{}NotSatisfied QOSGrpJobsLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSJobLimit"
    " QOSMaxWallDurationPerJobLimit QOSResourceLimit QOSTimeLimit QOSUsageThreshold",
    Cause.PRIORITY: "Priority",
    Cause.NO_GPUS: "Resources",
    Cause.NODES_DOWN: "ReqNodeNotAvail NodeDown PartitionDown PartitionInactive MaxPoweredUpNodes",
    Cause.RESERVATION: "Reservation ReservationDeleted ReservationInvalid",
    Cause.UNKNOWN: "None"
    # Slurm says these of two things: too large an ask, and nodes that are down.
    " PartitionNodeLimit Constraints BadConstraints"
    # An ask, a right or a setting that does not fit: nobody's limit that could be raised.
    " PartitionTimeLimit PartitionConfig MaxMemPerLimit AccountNotAllowed InvalidAccount"
    " QOSNotAllowed InvalidQOS AccountingPolicy"
    # Something else is not free, or not ready.
    " Licenses BurstBufferResources BurstBufferStageIn BurstBufferOperation Cleaning Prolog"
    " SchedDefer FedJobLock MpiPortsBusy NvidiaImexChannels"
    # How a run before ended.
    " JobLaunchFailure NonZeroExitCode TimeLimit InactiveLimit RaisedSignal DeadLine OutOfMemory"
    " SystemFailure",
}
LIMITED = [
    "Cpu",
    "CPU",
    "Mem",
    "Memory",
    "Node",
    "GRES",
    "License",
    "BB",
    "Billing",
    "Energy",
    "Unknown",
]


def chosen():
    return {
        pattern.format(what): cause
        for cause, words in WORDS.items()
        for pattern in words.split()
        for what in LIMITED
    }


def test_each_word_of_slurm_has_its_place():
    places = chosen()
    assert REASONS - set(places) == set()
    assert {word: cause_of(word) for word in REASONS} == {word: places[word] for word in REASONS}


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (None, Cause.UNKNOWN),
        ("(QOSMaxGRESPerUser)", Cause.USER_LIMIT),
        ("ReqNodeNotAvail, UnavailableNodes:a100-[1-2]", Cause.NODES_DOWN),
        ("ReqNodeNotAvail, Reserved for maintenance", Cause.RESERVATION),
        ("ReqNodeNotAvail, May be reserved for other job", Cause.UNKNOWN),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
            " partitions",
            Cause.UNKNOWN,
        ),
        ("900_[1-5%2]_JobArrayTaskLimit", Cause.ARRAY_THROTTLE),
        (HELD_BY_GATE, Cause.GROUP_LIMIT),
        ("SomethingNew", Cause.UNKNOWN),
    ],
)
def test_reasons_as_slurm_prints_them(printed, cause):
    assert cause_of(printed) is cause


def of(**seconds):
    return dict.fromkeys(Cause, 0) | {Cause[name]: value for name, value in seconds.items()}


def test_seconds_belong_to_the_reason_until_the_next():
    looks = [(110, "AssocGrpGRES"), (200, "Priority"), (260, "Resources")]
    assert split(100, 100, 300, looks) == of(GROUP_LIMIT=100, PRIORITY=60, NO_GPUS=40)


def test_before_eligible_all_is_deferral_whatever_the_reason():
    looks = [(100, "Resources"), (150, "JobHeldUser"), (210, "Resources")]
    assert split(100, 200, 300, looks) == of(DEFERRAL=110, NO_GPUS=90)
    assert split(100, None, 300, looks) == of(DEFERRAL=200)


def test_a_throttle_and_the_gate_are_told_apart_before_eligible():
    throttled = [(105, "JobArrayTaskLimit")]
    assert split(100, 400, 401, throttled) == of(ARRAY_THROTTLE=301)
    gated = [(100, "Resources"), (200, HELD_BY_GATE), (300, "Priority")]
    assert split(100, 290, 350, gated) == of(DEFERRAL=100, GROUP_LIMIT=100, PRIORITY=50)
    assert cause_at(HELD_BY_GATE, eligible=False) is Cause.GROUP_LIMIT
    assert cause_at("Priority", eligible=False) is Cause.DEFERRAL
    assert cause_at("Priority", eligible=True) is Cause.PRIORITY


def test_time_before_the_first_look_is_what_slurm_then_says_if_it_came_soon():
    assert split(0, 0, 300, [(30, None), (60, "Priority")]) == of(PRIORITY=300)
    late = LOOK_S + 1
    assert split(0, 0, 500, [(late, "Priority")]) == of(UNKNOWN=late, PRIORITY=500 - late)
    assert split(0, 0, 500, [(30, None), (late, "Priority")])[Cause.UNKNOWN] == late


def test_where_slurm_never_looked_or_nobody_did_is_unknown():
    assert split(0, 10, 100, []) == of(DEFERRAL=10, UNKNOWN=90)
    assert split(0, 0, 100, [(20, None)]) == of(UNKNOWN=100)
    looks = [(0, "Priority"), (900, "Resources")]
    assert split(0, 0, 1000, looks, gaps=[(300, 800)]) == of(PRIORITY=400, UNKNOWN=500, NO_GPUS=100)


def test_looks_after_the_start_say_nothing():
    assert split(0, 0, 50, [(60, "Priority")]) == of(UNKNOWN=50)
    assert split(0, 0, 50, [(50, "Priority")]) == of(PRIORITY=50)


def test_times_that_turn_round_give_nothing():
    assert split(100, 90, 50, [(10, "Priority")]) == of()


TIMES = st.integers(0, 2000)
SAID = st.sampled_from([None, "Priority", "Resources", "JobArrayTaskLimit", "New", HELD_BY_GATE])


@given(
    TIMES,
    st.none() | TIMES,
    TIMES,
    st.lists(st.tuples(TIMES, SAID), max_size=8),
    st.lists(TIMES, max_size=6, unique=True),
)
def test_parts_always_sum_to_the_wait(submit, eligible, until, looks, edges):
    ordered = sorted(edges)
    gaps = list(zip(ordered[::2], ordered[1::2], strict=False))
    parts = split(submit, eligible, until, sorted(looks, key=lambda one: one[0]), gaps=gaps)
    assert list(parts) == list(Cause)
    assert min(parts.values()) >= 0
    assert sum(parts.values()) == max(until - submit, 0)


NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
MAY_BE = "ReqNodeNotAvail, May be reserved for other job"
SENTENCE = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)


def around(*states, start=None, nodes=("a100-1",), flags=()):
    found = tuple(
        b.node(f"a100-{at}", state=state, partitions=("a100",))
        for at, state in enumerate(states, start=1)
    )
    reserved = ()
    if start is not None:
        one = p.Reservation(
            "r", NOW + start, NOW + start + timedelta(hours=1), nodes, None, flags, (), ()
        )
        reserved = (one,)
    return Around(found, reserved, NOW)


@pytest.mark.parametrize(
    ("reason", "seen", "cause"),
    [
        (SENTENCE, around("IDLE+DRAIN", "ALLOCATED"), Cause.NODES_DOWN),
        (SENTENCE.replace(" ", "_"), around("DOWN"), Cause.NODES_DOWN),
        (SENTENCE, around("ALLOCATED"), Cause.PRIORITY),
        (MAY_BE, around("IDLE", start=timedelta(minutes=10)), Cause.RESERVATION),
        (MAY_BE, around("IDLE+DRAIN"), Cause.NODES_DOWN),
        (MAY_BE, around("IDLE"), Cause.UNKNOWN),
        # Begins after the job would have ended, is over, or is of other nodes.
        (MAY_BE, around("IDLE", start=timedelta(minutes=61)), Cause.UNKNOWN),
        (MAY_BE, around("IDLE", start=timedelta(hours=-2)), Cause.UNKNOWN),
        (MAY_BE, around("IDLE", start=timedelta(0), nodes=("b-1",)), Cause.UNKNOWN),
        ("Priority", around("DOWN"), Cause.PRIORITY),
    ],
)
def test_what_slurm_says_of_two_things_is_told_apart_by_the_nodes(reason, seen, cause):
    told = told_apart(reason, partition="debug,a100", limit_minutes=60, around=seen)
    assert cause_of(told) is cause


def test_nodes_of_other_partitions_say_nothing():
    seen = around("DOWN")
    assert told_apart(MAY_BE, partition="debug", limit_minutes=None, around=seen) == MAY_BE


def test_a_job_without_a_limit_runs_into_every_reservation():
    seen = around("IDLE", start=timedelta(days=9))
    assert told_apart(MAY_BE, partition="a100", limit_minutes=None, around=seen) == "Reservation"


def test_plain_reasons_are_in_no_doubt():
    assert [is_in_doubt(one) for one in (None, "Priority", MAY_BE, SENTENCE)] == [
        False, False, True, True,
    ]  # fmt: skip
