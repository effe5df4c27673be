"""What is refused of notebooks and other applications."""

from gateway.web.texts import lazy_gettext as _l

APP_ERRORS = {
    "no_such_person": _l("Nobody else in the portal has this user name."),
    "too_many_guests": _l("At most %(most)s people can be let in."),
    "app_not_ready": _l("It cannot be used yet, or not any more."),
    "app_silent": _l("It did not answer. Its node may be gone: look again in a moment."),
    "app_refused": _l("It could not do that now."),
    "not_longer": _l("That is no longer than its time limit now."),
    "extension_too_long": _l("It cannot be given so much time: at most %(most)s minutes in all."),
}
