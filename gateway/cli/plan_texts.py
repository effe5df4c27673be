"""The words of `sluice plan`: where numbers are from, what a reader must know of them."""

from collections.abc import Mapping

from gateway.core.planner.figures import Notice, Source

SOURCES: Mapping[Source, str] = {
    Source.ASKED: "as you said",
    Source.ARITHMETIC: "arithmetic",
    Source.ASSUMED: "dimensions assumed from the parameters",
    Source.CARD_FILE: "the range of the card's table",
    Source.SITE: "measured at this site",
    Source.PRICE_LIST: "the price list",
    Source.ZERO: "ZeRO, arXiv 1910.02054",
    Source.DEEPSPEED: "DeepSpeed's memory estimator",
    Source.DEEPSPEED_BUCKET: "one reduce_bucket_size as DeepSpeed has it by default",
    Source.TORCH_AMP: "PyTorch's mixed precision: weights and gradients stay in 32 bits",
    Source.TORCH_DDP: "PyTorch DDP without gradient_as_bucket_view",
    Source.TORCH_FSDP: "PyTorch FSDP, full shard",
    Source.GEMINI: "taken to be like ZeRO-3",
    Source.KORTHIKANTI: "Korthikanti and others, arXiv 2205.05198",
    Source.MEGATRON: "Narayanan and others, arXiv 2104.04473",
    Source.KAPLAN: "Kaplan and others, arXiv 2001.08361",
    Source.FOUNDRY: "benchmarks of llm-foundry",
    Source.YOUNG: "Young 1974, first order",
    Source.DALY: "Daly 2006",
    Source.MEASURED: "measured on small models",
    Source.COMMON: "common experience",
}

NOTICES: Mapping[str, str] = {
    "attention_left_out": "Only 6 P is counted: attention would add about {percent} % to the hours"
    " for a model of this size. Give layers, hidden size, heads and vocabulary to count it.",
    "mfu_is_not_hfu": "The backward pass computes the forward pass again. MFU does not count that:"
    " what the cards themselves report is about a third higher.",
    "mfu_is_usual": "No MFU was given and none was measured here: the hours take what {card} cards"
    " usually reach.",
    "mfu_with_offload": "With the optimizer in the memory of nodes, more than {percent} % has not"
    " been reported: these hours are too few.",
    "mfu_above_usual": "{card} cards usually reach at most {usual} %. Higher ones were measured,"
    " for a well tuned run.",
    "card_uncertain": "What is published of {card} is contradictory: ask for the sheet of yours.",
    "dimensions_assumed": "Activations are of an assumed model: {layers} layers, hidden size"
    " {hidden}.",
    "fp16_for_bf16": "{card} cannot compute in bf16: planned in fp16, which needs loss scaling.",
    "strategy_rough": "{strategy} was not measured: it is taken to be like ZeRO-3.",
    "preempted_is_free": "Runs in QoS {qos} that were preempted are not charged here: it costs less"
    " than it says.",
}

CHANGES: Mapping[str, tuple[str, str]] = {
    # kind: what would make it fit, and the end of what fits
    "gpus": ("on {values} cards", "the fewest cards: {values}"),
    "strategy": ("with another strategy: {values}", ""),
    "micro_batch": ("with a micro-batch of {values}", "the largest micro-batch: {values}"),
    "recompute": ("with recomputation {values}", ""),
    "card": ("on other cards: {values}", ""),
}

FITS: Mapping[str, str] = {
    "yes": "It fits.",
    "tight": "It fits by the estimate, and does not at the upper end of its band.",
    "no": "It does not fit.",
}

SYMBOLS = (
    "P parameters, N cards, G cards of a node, D tokens, s sequence, b micro-batch of a card, h"
    " hidden size, a heads, L layers, V vocabulary, ℓ largest layer, β wrapped block and root, C"
    " seconds of a save, M time between interruptions, R of a restart, τ interval, k copies kept."
)


def told(one: Notice) -> str:
    return NOTICES[one.code].format(**dict(one.facts))
