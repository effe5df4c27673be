"""What the planner refuses, at the field it is about."""

from gateway.web.texts import lazy_gettext as _l

PLANNER_ERRORS = {
    "plan_number": _l("Type a number, such as 16 or 1.2e9."),
    "plan_whole": _l("Type a whole number."),
    "plan_range": _l("From %(least)s to %(most)s."),
    "plan_above": _l("More than %(least)s, and at most %(most)s."),
    "plan_no_model": _l(
        "Say how large the model is: its parameters, or its layers, hidden size, heads and"
        " vocabulary."
    ),
    "plan_dimensions": _l("Layers, hidden size, heads and vocabulary are needed together."),
    "plan_heads": _l("%(heads)s heads do not divide a hidden size of %(hidden)s evenly."),
    "plan_params_differ": _l(
        "A model of these dimensions has about %(found)s parameters, not %(told)s."
    ),
    "plan_strategy": _l("There is no strategy “%(name)s”. There are: %(known)s."),
    "plan_single": _l(
        "“single” is for one card. Choose ddp or a strategy that shards for %(gpus)s."
    ),
    "plan_card": _l("The planner knows no card “%(name)s”. Perhaps: %(near)s."),
    "plan_precision": _l("There is no precision “%(name)s”. There are: %(known)s."),
    "plan_no_bf16": _l(
        "%(card)s cannot compute in bf16. Choose fp16, with loss scaling, or leave it to auto."
    ),
    "plan_no_fp32": _l("Nobody has told the planner how fast %(card)s is in fp32."),
    "plan_recompute": _l("There is no recomputation “%(name)s”. There are: %(known)s."),
    "plan_discount": _l("From 0 to less than 100 percent."),
}
