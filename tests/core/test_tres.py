import pytest

from gateway.core.tres import STATIC_IDS, gpu_count, parse_tres, single_gpu_type


@pytest.mark.parametrize(
    ("text", "total", "by_type"),
    [
        ("gres/gpu:a100=8,gres/gpu=8,cpu=64", 8, {"a100": 8}),
        ("gres/gpu:a100=2", 2, {"a100": 2}),
        ("gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1", 3, {"a100": 2, "v100": 1}),
        ("gres/gpu=4,gres/gpu:a100=2", 4, {"a100": 2}),
        ("gres/gpumem=40G,gres/gpuutil=87,gres/gpu=1", 1, {}),
        ("", 0, {}),
        ("billing=10,cpu=10,mem=374000M,node=2", 0, {}),
    ],
)
def test_typed_and_untyped_entries_are_the_same_cards(text, total, by_type):
    assert gpu_count(parse_tres(text)) == (total, by_type)


def test_numeric_ids_are_translated_by_the_clusters_table():
    ids = {**STATIC_IDS, 1001: "gres/gpu", 1002: "gres/gpu:a100"}
    tres = parse_tres("1=64,4=1,1001=8,1002=8", ids)
    assert gpu_count(tres) == (8, {"a100": 8})
    assert tres["cpu"] == 64


def test_an_id_that_nobody_can_name_is_refused_because_it_may_be_a_gpu():
    with pytest.raises(ValueError, match="1001"):
        parse_tres("1=64,4=1,1001=8")


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("mem=64G", 65536),
        ("mem=374000M", 374000),
        ("mem=1.50G", 1536),
        ("mem=0", 0),
        ("mem=7", 7),
        ("mem=1?", 2**40),
    ],
)
def test_memory_is_in_mebibytes(text, mebibytes):
    assert parse_tres(text) == {"mem": mebibytes}


@pytest.mark.parametrize("text", ["cpu", "=3", "cpu=x", "cpu=1.x", "cpu=", "cpu=٣"])
def test_a_pair_that_cannot_be_read_is_an_error_and_never_zero(text):
    with pytest.raises(ValueError, match=r"pair|count"):
        parse_tres(text)


def test_the_type_is_named_only_when_it_covers_every_card():
    assert single_gpu_type(parse_tres("gres/gpu=8,gres/gpu:a100=8")) == "a100"
    assert single_gpu_type(parse_tres("gres/gpu=4,gres/gpu:a100=2")) is None
    assert single_gpu_type(parse_tres("cpu=4")) is None
