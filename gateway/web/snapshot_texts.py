"""What snapshots are refused, and what has happened to their bases."""

from gateway.core.snapshots import Doubt, Shared
from gateway.web.texts import lazy_gettext as _l

SNAPSHOT_ERRORS = {
    "bad_snapshot_name": _l("Type a name of at most %(longest)s characters."),
    "snapshot_not_reachable": _l(
        "Others cannot enter a folder above %(folder)s, so they could not read it. Let them through"
        " (chmod o+x), save once more, or ask for an area of the site's for snapshots."
    ),
    "not_your_group": _l("You are not in the group %(group)s."),
    "snapshot_share": _l("Choose with whom."),
}

DOUBTS = {
    Doubt.GONE: _l("Its base %(base)s is not offered any more: it may be gone from the nodes."),
    Doubt.MOVED: _l("%(base)s is another folder now than when this was saved."),
    Doubt.CHANGED: _l(
        "%(base)s has changed since this was saved: packages may not fit together any more. Save a"
        " new one above it."
    ),
}

SHARED = {
    Shared.NONE: _l("only you"),
    Shared.GROUP: _l("group %(group)s"),
    Shared.ASKED: _l("the site, once an administrator agrees"),
    Shared.SITE: _l("the whole site"),
}
