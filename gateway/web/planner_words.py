"""The words of a plan: where its numbers are from, what a reader must know of them. English; the
pages look each text up in the reader's language, `sluice plan` prints it as it is and must not
wait for Flask."""

from collections.abc import Mapping

from gateway.core.planner.figures import Source

_MANY = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def _l(text: str) -> str:
    """Marks a text for the catalogue."""
    return text


SOURCES: Mapping[Source, str] = {
    Source.ASKED: _l("as you said"),
    Source.ARITHMETIC: _l("arithmetic"),
    Source.ASSUMED: _l("dimensions assumed from the parameters"),
    Source.CARD_FILE: _l("the range of the card's table"),
    Source.SITE: _l("measured at this site"),
    Source.PRICE_LIST: _l("the price list"),
    Source.ZERO: _l("ZeRO, arXiv 1910.02054"),
    Source.DEEPSPEED: _l("DeepSpeed's memory estimator"),
    Source.DEEPSPEED_BUCKET: _l("one reduce_bucket_size as DeepSpeed has it by default"),
    Source.TORCH_AMP: _l("PyTorch's mixed precision: weights and gradients stay in 32 bits"),
    Source.TORCH_DDP: _l("PyTorch DDP without gradient_as_bucket_view"),
    Source.TORCH_FSDP: _l("PyTorch FSDP, full shard"),
    Source.GEMINI: _l("taken to be like ZeRO-3"),
    Source.KORTHIKANTI: _l("Korthikanti and others, arXiv 2205.05198"),
    Source.MEGATRON: _l("Narayanan and others, arXiv 2104.04473"),
    Source.KAPLAN: _l("Kaplan and others, arXiv 2001.08361"),
    Source.FOUNDRY: _l("benchmarks of llm-foundry"),
    Source.YOUNG: _l("Young 1974, first order"),
    Source.DALY: _l("Daly 2006"),
    Source.MEASURED: _l("measured on small models"),
    Source.COMMON: _l("common experience"),
}

NOTICES: Mapping[str, str] = {
    "attention_left_out": _l(
        "Only 6 P is counted: attention would add about %(percent)s %% to the hours for a "
        "model of this size. Give layers, hidden size, heads and vocabulary to count it."
    ),
    "mfu_is_not_hfu": _l(
        "The backward pass computes the forward pass again. MFU does not count that: what the "
        "cards themselves report is about a third higher."
    ),
    "mfu_is_usual": _l(
        "No MFU was given and none was measured here: the hours take what %(card)s cards "
        "usually reach."
    ),
    "mfu_with_offload": _l(
        "With the optimizer in the memory of nodes, more than %(percent)s %% has not been "
        "reported: these hours are too few."
    ),
    "mfu_above_usual": _l(
        "%(card)s cards usually reach at most %(usual)s %%. Higher ones were measured, for a "
        "well tuned run."
    ),
    "card_uncertain": _l(
        "What is published of %(card)s is contradictory: ask for the sheet of yours."
    ),
    "dimensions_assumed": _l(
        "Activations are of an assumed model: %(layers)s layers, hidden size %(hidden)s."
    ),
    "fp16_for_bf16": _l(
        "%(card)s cannot compute in bf16: planned in fp16, which needs loss scaling."
    ),
    "strategy_rough": _l("%(strategy)s was not measured: it is taken to be like ZeRO-3."),
    "preempted_is_free": _l(
        "Runs in QoS %(qos)s that were preempted are not charged here: it costs less than it says."
    ),
    "no_template": _l(
        "No template here trains with %(strategy)s: choose one, or another strategy."
    ),
    "shard_yourself": _l(
        "The script decides how far it divides the model: the template has no field for it."
    ),
    "no_such_card": _l("No partition that you may use has %(card)s cards: choose one in the form."),
    "other_cards": _l(
        "The same number of cards on each node makes %(filled)s cards, not %(asked)s."
    ),
    "too_few_nodes": _l("The partition has only %(nodes)s nodes with such cards."),
    "several_stretches": _l(
        "It will not end within one time limit: the hours, at the upper end of their band, are"
        " %(stretches)s such stretches. The job saves, goes back into the queue and resumes."
    ),
}

CHANGES: Mapping[str, tuple[str, str]] = {
    # kind: what would make it fit, and the end of what fits
    "gpus": (_l("on %(values)s cards"), _l("the fewest cards: %(values)s")),
    "strategy": (_l("with another strategy: %(values)s"), ""),
    "micro_batch": (
        _l("with a micro-batch of %(values)s"),
        _l("the largest micro-batch: %(values)s"),
    ),
    "recompute": (_l("with recomputation %(values)s"), ""),
    "card": (_l("on other cards: %(values)s"), ""),
}

FITS: Mapping[str, str] = {
    "yes": _l("It fits."),
    "tight": _l("It fits by the estimate, and does not at the upper end of its band."),
    "no": _l("It does not fit."),
}

SYMBOLS = _l(
    "P parameters, N cards, G cards of a node, D tokens, s sequence, b micro-batch of a card, "
    "h hidden size, a heads, L layers, V vocabulary, ℓ largest layer, β wrapped block and "
    "root, C seconds of a save, M time between interruptions, R of a restart, τ interval, k "
    "copies kept."
)


def short(value: float) -> str:
    """`12 B`: three figures and a letter for the thousands."""
    for size, letter in _MANY:
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def hours_figure(value: float) -> str:
    """Three figures, and no fraction of a large number."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
