"""The order of a job's GPUs on its node: the real pynvml over a library without cards."""

import itertools
import resource
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nvml_machine import NVSWITCH, PAIRS, PCIE, SINGLE, Node, busy, uuid

from sluice_train.node.cards import Card, Doubt, Machine
from sluice_train.node.order import best_path, reordered
from sluice_train.node.smi import parse

ASKED = (  # each function of the driver that an order may rest upon
    *("nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"),
    *("nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMigMode"),
    *("nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkRemoteDeviceType"),
    *("nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetTopologyCommonAncestor"),
)


def ordered(node: Node, given: str, **variables: str) -> tuple[str, str]:
    done = node.run("order", CUDA_VISIBLE_DEVICES=given, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"GPU order: {given} ")
    return done.stdout.strip(), done.stderr


def test_two_nvlink_pairs_with_interleaved_numbers_are_brought_together(node: Node) -> None:
    node.has(PAIRS)
    new, log = ordered(node, "0,1,2,3")
    assert new == "0,2,1,3"
    expected = "GPU order: 0,1,2,3 -> 0,2,1,3 (node a100-1: neighbours NV4 SYS NV4, before SYS SYS"
    assert log.startswith(expected)


def test_cards_that_are_all_joined_alike_keep_slurms_order(node: Node) -> None:
    node.has(NVSWITCH)
    new, log = ordered(node, "0,1,2,3,4,5,6,7")
    assert new == ""
    assert "kept" in log
    assert "NV12" in log


def test_without_nvlink_neighbours_share_a_pcie_switch_and_then_a_socket(node: Node) -> None:
    node.has(PCIE)
    assert ordered(node, "0,1,2,3,4,5,6,7")[0] == ""
    assert ordered(node, "0,4,2,6,1,5")[0] == "0,1,2,4,5,6"


def test_one_card_has_no_order(node: Node) -> None:
    node.has(SINGLE)
    assert ordered(node, "0")[0] == ""


def test_a_job_without_cards_hears_nothing(node: Node) -> None:
    node.has(PAIRS)
    done = node.run("order")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_numbers_that_slurm_gave_are_numbers_by_bus_id(node: Node) -> None:
    node.has(busy(3) + busy(1) + busy(2) + busy(0) + "nvlink 3 2 4\nnvlink 1 0 4\n")
    # lines 3 and 2 of the library are bus ids 0 and 2; 1 and 0 are 1 and 3
    assert ordered(node, "0,1,2,3")[0] == "0,2,1,3"


def test_a_part_of_the_cards_stays_that_part(node: Node) -> None:
    node.has(PAIRS)
    assert ordered(node, "0,1,2")[0] == "0,2,1"
    assert ordered(node, "3,2,1")[0] == "1,3,2"


def test_under_a_device_cgroup_numbers_count_the_visible_cards(node: Node) -> None:
    hidden = "".join(busy(at, hidden=1) for at in (0, 1, 2, 3))
    node.has(hidden + "".join(busy(at) for at in (4, 5, 6, 7)) + "nvlink 4 6 2\nnvlink 5 7 2\n")
    assert ordered(node, "0,1,2,3")[0] == "0,2,1,3"


def test_uuids_and_their_beginnings_are_kept_as_they_were_given(node: Node) -> None:
    node.has(PAIRS)
    given = [uuid(0), uuid(1)[:12], uuid(2), uuid(3)[:12]]
    new, _ = ordered(node, ",".join(given), CUDA_DEVICE_ORDER="")
    assert new.split(",") == [given[0], given[2], given[1], given[3]]


@pytest.mark.parametrize("function", ASKED)
def test_an_error_of_the_driver_leaves_the_order(node: Node, function: str) -> None:
    node.has(PAIRS + f"fail {function} 999\n")
    new, log = ordered(node, "0,1,2,3")
    assert new == ""
    assert "Unknown Error" in log


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetTopologyCommonAncestor"]
)
def test_a_driver_without_a_function_leaves_the_order(node: Node, function: str) -> None:
    node.has(PAIRS, absent=(function,))
    new, log = ordered(node, "0,1,2,3")
    assert new == ""
    assert "Function Not Found" in log


def test_a_driver_that_tells_no_numa_nodes_and_no_mig_still_tells_links(node: Node) -> None:
    node.has(PAIRS, absent=("nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetMigMode"))
    assert ordered(node, "0,1,2,3")[0] == "0,2,1,3"


def test_a_driver_that_never_answers_does_not_hold_up_the_training(node: Node) -> None:
    node.has(PAIRS + "sleep nvmlDeviceGetUUID 60\n")
    begun = time.monotonic()
    done = node.run("order", CUDA_VISIBLE_DEVICES="0,1,2,3")
    assert done.stdout == ""
    assert time.monotonic() - begun < 15


def test_mig_is_never_touched(node: Node) -> None:
    node.has(PAIRS.replace("procs=1", "procs=1 mig=1", 1))
    assert "MIG" in ordered(node, "0,1,2,3")[1]
    assert ordered(node, "0,1,2,3")[0] == ""
    assert ordered(node, "1,2,3")[0] == "1,3,2"
    assert ordered(node, "MIG-1,MIG-2")[0] == ""


@pytest.mark.parametrize(
    "given", ["0,1,2,9", "0,0,1", "0,,1", "0,GPU-", f"0,{uuid(1)}", "-1,0", "a b,$(id)", "١,0"]
)
def test_a_variable_that_is_not_certain_is_left(node: Node, given: str) -> None:
    node.has(PAIRS)
    assert ordered(node, given)[0] == ""


def test_numbers_in_cudas_own_order_are_left(node: Node) -> None:
    node.has(PAIRS)
    assert ordered(node, "0,1,2,3", CUDA_DEVICE_ORDER="FASTEST_FIRST")[0] == ""
    assert ordered(node, "0,1,2,3", CUDA_DEVICE_ORDER="")[0] == ""


def test_a_node_without_a_driver_leaves_the_order(node: Node) -> None:
    assert ordered(node, "0,1,2,3")[0] == ""
    node.lacks_pynvml()
    assert "nvidia-smi" in ordered(node, "0,1,2,3")[1]


def test_it_takes_a_moment(node: Node) -> None:
    """The whole process, with eight cards. Its processor's time: the machine is shared."""
    node.has(NVSWITCH)
    took = []
    for _ in range(5):
        begun = processor_seconds()
        ordered(node, "0,1,2,3,4,5,6,7")
        took.append(processor_seconds() - begun)
    assert min(took) <= 0.3, took


def processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# nvidia-smi, where there is no pynvml

LISTING = "".join(f"{at}, {uuid(at)}, 00000000:{at + 1:02X}:00.0, [N/A]\n" for at in range(4))
HEADING = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m"
TOPOLOGY = f"""{HEADING}
GPU0\t X \tSYS\tNV4\tSYS\tPXB\t0-15\t0\t\tN/A
GPU1\tSYS\t X \tSYS\tNV4\tSYS\t16-31\t1\t\tN/A
GPU2\tNV4\tSYS\t X \tNODE\tPXB\t0-15\t0\t\tN/A
GPU3\tSYS\tNV4\tNODE\t X \tSYS\t16-31\t1\t\tN/A
NIC0\tPXB\tSYS\tPXB\tSYS\t X

Legend:

  X    = Self
  SYS  = over the processors
"""


def smi(listing: str, topology: str) -> str:
    return f"""#!/bin/sh
case $1 in
topo) cat <<'END'
{topology}END
;;
*) cat <<'END'
{listing}END
;;
esac
"""


def test_the_text_of_nvidia_smi_serves_where_pynvml_is_absent(node: Node) -> None:
    node.lacks_pynvml()
    node.program("nvidia-smi", smi(LISTING, TOPOLOGY))
    new, log = ordered(node, "0,1,2,3")
    assert new == "0,2,3,1"
    assert "NV4 NODE NV4" in log


def test_an_nvidia_smi_that_fails_leaves_the_order(node: Node) -> None:
    node.lacks_pynvml()
    node.program("nvidia-smi", "#!/bin/sh\necho No devices were found\nexit 6\n")
    assert ordered(node, "0,1,2,3")[0] == ""


def test_the_table_tells_links_and_numa_nodes() -> None:
    machine = parse(LISTING, TOPOLOGY)
    assert [card.numa for card in machine.cards] == [0, 1, 0, 1]
    assert machine.links[0, 2] == "NV4"
    assert machine.links[2, 3] == "NODE"


@pytest.mark.parametrize(
    ("listing", "topology"),
    [
        ("", TOPOLOGY),
        ("Unable to determine the device handle\n", TOPOLOGY),
        (LISTING, ""),
        (LISTING, "Segmentation fault\n"),
        (LISTING, TOPOLOGY.replace("GPU3\tSYS", "GPU4\tSYS")),
        (LISTING, TOPOLOGY.replace("NV4", "NV0")),
        (LISTING, TOPOLOGY.replace("NV4", "NEW")),
        (LISTING, TOPOLOGY.replace("GPU2\tNV4", "GPU2\tNV2")),
        (LISTING.replace("3, ", "3; "), TOPOLOGY),
        (LISTING.rsplit("3, ", 1)[0], TOPOLOGY),
    ],
)
def test_a_text_that_is_odd_is_a_doubt(listing: str, topology: str) -> None:
    with pytest.raises(Doubt):
        parse(listing, topology)


# properties

LINKS = st.sampled_from(["NV1", "NV2", "NV4", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS"])


@st.composite
def machines(draw: st.DrawFn, most: int = 10) -> Machine:
    count = draw(st.integers(1, most))
    numas = [draw(st.sampled_from([None, 0, 1])) for _ in range(count)]
    found = [Card(uuid(at), f"{at:02x}", numas[at], False) for at in range(count)]
    links = {(a, b): draw(LINKS) for b in range(count) for a in range(b)}
    return Machine(tuple(found), links)


@given(machine=machines(), data=st.data())
def test_the_result_is_a_permutation_of_what_was_given(
    machine: Machine, data: st.DataObject
) -> None:
    word = st.integers(0, len(machine.cards)).map(str) | st.sampled_from(
        ["", "MIG-1", uuid(0), uuid(1), "GPU-0000", "x"]
    )
    given = ",".join(data.draw(st.lists(word, min_size=1, max_size=10)))
    try:
        new, _ = reordered(given, machine, device_order="PCI_BUS_ID")
    except Doubt:
        return
    assert sorted(new.split(",")) == sorted(given.split(","))


@given(machine=machines(), data=st.data())
def test_a_certain_set_in_any_order_keeps_its_members(
    machine: Machine, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(machine.cards))))
    given = ",".join(str(at) for at in order)
    new, _ = reordered(given, machine, device_order="PCI_BUS_ID")
    assert sorted(new.split(",")) == sorted(given.split(","))
    again, _ = reordered(new, machine, device_order="PCI_BUS_ID")
    assert again == new


@given(machine=machines(most=6))
def test_up_to_eight_no_order_is_better_and_of_equals_the_first_is_taken(machine: Machine) -> None:
    count = len(machine.cards)
    weight = {"SYS": 0, "NODE": 1, "PHB": 5, "PXB": 9, "PIX": 30}
    weights = [
        [
            0 if a == b else weight.get(link := machine.links[min(a, b), max(a, b)], len(link) * 50)
            for b in range(count)
        ]
        for a in range(count)
    ]
    ties = [(card.numa or 0, at) for at, card in enumerate(machine.cards)]

    def rank(path: tuple[int, ...]) -> tuple[int, list[tuple[int, int]]]:
        score = sum(weights[a][b] for a, b in itertools.pairwise(path))
        return -score, [ties[at] for at in path]

    assert best_path(weights, ties) == min(itertools.permutations(range(count)), key=rank)


def test_eight_cards_are_searched_in_a_fifth_of_a_second() -> None:
    weights = [[(a * b * 7) % 11 if a != b else 0 for b in range(8)] for a in range(8)]
    begun = time.process_time()
    best_path(weights, [(0, at) for at in range(8)])
    assert time.process_time() - begun <= 0.2


def test_sixteen_cards_are_walked_greedily(node: Node) -> None:
    pairs = {(a, a + 8) for a in range(8)}
    links = {(a, b): "NV2" if (a, b) in pairs else "SYS" for b in range(16) for a in range(b)}
    machine = Machine(tuple(Card(uuid(at), f"{at:02x}", 0, False) for at in range(16)), links)
    given = ",".join(str(at) for at in range(16))
    new, _ = reordered(given, machine, device_order="PCI_BUS_ID")
    assert new == "0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15"
