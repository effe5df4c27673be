"""The words of contribution, and what is refused there."""

from collections.abc import Mapping

from gateway.core.contribution import Counted, Feed, Shape, Untouched
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

SHAPES: Mapping[Shape, Lazy] = {
    Shape.LINEAR: _l("in proportion"),
    Shape.SQUARE_ROOT: _l("as the square root"),
    Shape.CAPPED: _l("up to a cap"),
}
COUNTED: Mapping[Counted, Lazy] = {
    Counted.ONCE: _l("once"),
    Counted.PER_DAY: _l("on each day that it lasts"),
}
FEEDS: Mapping[Feed, Lazy] = {
    Feed.HAND: _l("entered by hand"),
    Feed.LOANS: _l("from the ledger: credit lent and not yet returned"),
    Feed.TOP_UPS: _l("from the ledger: money paid into the balance"),
}
UNTOUCHED: Mapping[Untouched, Lazy] = {
    Untouched.LEFT_ALONE: _l("left alone by the rules"),
    Untouched.DRIFTED: _l("changed behind the portal: adopt or restore it first"),
    Untouched.PARENT: _l("shares with the account above"),
}
CONTRIBUTION_ERRORS: Mapping[str, Lazy] = {
    "contribution_no_kind": _l("There is no such kind. Choose one of the list, or add it first."),
    "contribution_from_ledger": _l(
        "“%(name)s” is read from the ledger: entered by hand it would count twice."
    ),
    "contribution_amount": _l("At most %(most)s."),
    "contribution_replaced": _l(
        "Somebody has corrected this line meanwhile. Look at what stands there now."
    ),
    "contribution_rules_changed": _l(
        "Somebody has changed the rules meanwhile. Look at them, then set yours again."
    ),
    "contribution_many_kinds": _l("At most %(most)s kinds."),
    "contribution_kind_key": _l(
        "A short name begins with a small letter and has small letters, digits, - and _."
    ),
    "contribution_name": _l("Type 1 to %(longest)s characters that can be printed."),
    "contribution_weight": _l("From 0 to %(most)s points a unit."),
    "contribution_half_life": _l("From 1 to %(most)s days, or nothing when it does not fade."),
    "contribution_kind_used": _l(
        "Lines are entered as “%(name)s”, so it stays. With a weight of 0 it counts nothing."
    ),
    "contribution_bounds": _l(
        "Shares are from 1 to %(most)s, and the smallest must not be above the largest."
    ),
    "contribution_scale": _l("From 0 to %(most)s."),
    "contribution_cap": _l("Say up to how many points it counts: more than 0."),
    "contribution_points": _l("Type more than 0 points for each QoS."),
    "contribution_tier_twice": _l("Each QoS once."),
    "contribution_tier_shape": _l("Type one line for each QoS: its points, a colon, its name."),
    "contribution_no_qos": _l("Slurm has no QoS “%(qos)s”."),
    "contribution_not_set_up": _l("There are no rules yet: set kinds and a formula first."),
    "contribution_still_applying": _l(
        "The change of an earlier run is still being applied. Try again when it is settled."
    ),
}
