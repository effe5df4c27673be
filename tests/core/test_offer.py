"""What a person's associations allow, as Slurm reads its own lists."""

import pytest

from gateway.core.offer import build_offer
from gateway.testing import builders as b


def build(associations, *, partitions=None, qos=None, nodes=(), user="member"):
    return build_offer(
        user,
        associations,
        partitions if partitions is not None else (b.partition(),),
        qos if qos is not None else (b.qos(), b.qos("spot")),
        nodes,
    )


def names(offer):
    return {g.name: {p.name: [q.name for q in p.qos] for p in g.partitions} for g in offer.groups}


def test_only_the_persons_own_groups():
    offer = build((b.association(), b.association("other", "vision")))
    assert names(offer) == {"nlp": {"a100": ["normal", "spot"]}}


def test_the_default_group_and_qos_come_first():
    offer = build(
        (
            b.association(account="bio", is_default_account=False),
            b.association(default_qos="spot"),
        )
    )
    assert [group.name for group in offer.groups] == ["nlp", "bio"]
    assert offer.default_group.name == "nlp"
    assert offer.default_group.default_partition.default_qos.name == "spot"


@pytest.mark.parametrize(
    ("lists", "allowed"),
    [
        ({"allow_accounts": ("NLP",)}, True),
        ({"allow_accounts": ("vision",)}, False),
        ({"deny_accounts": ("Nlp",)}, False),
        ({"deny_accounts": ("vision",)}, True),
        ({"allow_accounts": ("nlp",), "deny_accounts": ("nlp",)}, True),
    ],
)
def test_allow_and_deny_accounts(lists, allowed):
    """Where AllowAccounts is set, DenyAccounts is not enforced."""
    offer = build((b.association(),), partitions=(b.partition(**lists),))
    assert bool(names(offer)["nlp"]) is allowed


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"allow_qos": ("SPOT",)}, ["spot"]),
        ({"deny_qos": ("spot",)}, ["normal"]),
        ({"allow_qos": ("spot",), "deny_qos": ("spot",)}, ["spot"]),
    ],
)
def test_allow_and_deny_qos(lists, expected):
    offer = build((b.association(),), partitions=(b.partition(**lists),))
    assert names(offer) == {"nlp": {"a100": expected}}


def test_a_partition_without_a_qos_for_this_group_is_not_offered():
    offer = build((b.association(qos=("urgent",)),))
    assert names(offer) == {"nlp": {}}


def test_an_association_for_one_partition_offers_that_one_only():
    offer = build(
        (b.association(partition="A100"),), partitions=(b.partition(), b.partition("rtx4090"))
    )
    assert names(offer) == {"nlp": {"a100": ["normal", "spot"]}}


def test_an_association_for_one_partition_goes_before_the_general_one():
    offer = build(
        (b.association(), b.association(partition="rtx4090", qos=("spot",))),
        partitions=(b.partition(), b.partition("rtx4090")),
    )
    assert names(offer) == {"nlp": {"a100": ["normal", "spot"], "rtx4090": ["spot"]}}


def test_a_qos_that_another_preempts_may_be_interrupted():
    levels = (b.qos("normal", preempts=("Spot",)), b.qos("spot"))
    offer = build((b.association(),), qos=levels)
    choices = offer.groups[0].partitions[0].qos
    assert {choice.name: choice.preemptible for choice in choices} == {
        "normal": False,
        "spot": True,
    }


def test_gpus_are_counted_by_type():
    nodes = (
        b.node("n1", gpus=8),
        b.node("n2", gpus=4),
        b.node("n3", gpu_type="h100", gpus=2),
        b.node("n4", gpu_type=None, gpus=0),
        b.node("n5", partitions=("other",)),
    )
    partition = build((b.association(),), nodes=nodes).groups[0].partitions[0]
    assert [(kind.name, kind.per_node, kind.nodes) for kind in partition.gpus] == [
        ("a100", 8, 2),
        ("h100", 2, 1),
    ]
    assert partition.gpus_per_node == 8


def test_a_coordinator_leads_the_group():
    offer = build((b.association(is_coordinator=True),))
    assert offer.groups[0].leads


def test_limits_stand_next_to_each_qos():
    association = b.association(max_gpus_per_job=4, group_max_gpus=64, max_jobs=3)
    levels = (b.qos(max_gpus_per_job=16, max_gpus_per_group=32), b.qos("spot"))
    partition = build((association,), qos=levels).groups[0].partitions[0]
    normal, spot = (partition.find_qos(name).limits for name in ("normal", "spot"))
    assert (normal.max_gpus_per_job, normal.max_gpus_per_group) == (16, 32)
    assert (spot.max_gpus_per_job, spot.max_gpus_per_group, spot.max_jobs) == (4, 64, 3)


def test_nobody_is_offered_nothing():
    offer = build(())
    assert (offer.groups, offer.default_group, offer.find_group("nlp")) == ((), None, None)


def test_a_qos_may_lift_the_partitions_node_limit():
    lifting = b.qos(flags=("PartitionMaxNodes",))
    offer = build((b.association(),), partitions=(b.partition(max_nodes=1),), qos=(lifting,))
    assert offer.groups[0].partitions[0].qos[0].limits.max_nodes is None


def test_what_is_retired_is_not_offered_although_a_persons_own_list_has_it():
    found = build_offer(
        "member",
        (b.association(),),
        (b.partition(),),
        (b.qos(), b.qos("spot")),
        (),
        retired=frozenset({"spot"}),
    )
    assert names(found) == {"nlp": {"a100": ["normal"]}}
