"""DeepSpeed's own estimates of memory: prints [[card, host], ...] in bytes for what it is asked.

python deepspeed_estimates.py '[["zero3", params, largest_layer, cards, nodes], ...]'
"""

import json
import sys

from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as ask3
from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as ask2

OFFLOAD = {
    "zero2": {"cpu_offload": False},
    "zero2-offload": {"cpu_offload": True},
    "zero3": {"cpu_offload": False},
    "zero3-offload": {"cpu_offload": True, "cpu_offload_params": False},
    "zero3-offload-all": {},
}


def estimate(strategy, params, layer, cards, nodes):
    where = {"num_gpus_per_node": cards, "num_nodes": nodes, **OFFLOAD[strategy]}
    if strategy.startswith("zero2"):
        host, card = ask2(params, **where)
    else:
        host, card, *_ = ask3(params, largest_layer_params=layer, **where)
    return card, host


print(json.dumps([estimate(*one) for one in json.loads(sys.argv[1])]))
