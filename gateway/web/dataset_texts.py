"""What the catalogue of datasets says and refuses."""

from gateway.web.texts import lazy_gettext as _l

DATASET_ERRORS = {
    "unknown_dataset": _l(
        "There is no dataset %(name)s for you. Choose one of the list, or type a path that begins"
        " with a slash."
    ),
    "dataset_missing": _l("%(path)s: there is no such folder."),
    "dataset_not_a_folder": _l("%(path)s is no folder."),
    "dataset_not_permitted": _l("%(path)s: you may not read this folder."),
    "dataset_writable": _l(
        "%(path)s: you can write to this folder. Data that a job reads must not change under it:"
        " have it made read-only, or take one of the catalogue."
    ),
    "dataset_name": _l(
        "A name has small letters, digits and . _ -, begins with a letter or digit, and has at"
        " most 64 characters."
    ),
    "dataset_name_taken": _l("There is a dataset of this name already."),
    "dataset_path": _l(
        "Type an absolute path of letters, digits and . _ - + = @ %% / without colon or comma."
    ),
    "dataset_text_missing": _l("Type a few words here."),
    "dataset_text_long": _l("At most %(max)s characters."),
    "dataset_visibility": _l("Choose who may see it."),
    "dataset_manifest_line": _l(
        "Line %(line)s is none of a manifest: a SHA-256, a blank, the bytes, a blank, the relative"
        " path; sorted by path, each once."
    ),
    "dataset_manifest_empty": _l("The manifest lists no file."),
    "dataset_manifest_missing": _l(
        "There is no manifest yet. Make one with python3 -m sluice_train.data manifest FOLDER."
    ),
    "dataset_manifest_unread": _l("The manifest %(path)s could not be read."),
    "dataset_manifest_large": _l("The manifest has more than %(max)s MB."),
    "dataset_state": _l("The version is %(state)s now, so that cannot be done."),
    "dataset_not_yours": _l("Only its owner, the leaders of its group and administrators do that."),
    "dataset_no_parent": _l("There is no version %(name)s that this one could be made from."),
    "dataset_request_done": _l("The request has been answered already."),
    "dataset_no_place": _l("There is no partition where %(login)s may run such a job."),
    "dataset_reader": _l("Type the name of a group or of a Unix account."),
}

VISIBILITY_WORDS = {
    "everyone": _l("Everybody sees and uses it"),
    "listed": _l("Everybody sees that it exists; those named use it"),
    "groups": _l("Only those named see it"),
}
STATE_WORDS = {
    "draft": _l("draft"),
    "requested": _l("asked to be published"),
    "published": _l("published"),
    "withdrawn": _l("withdrawn"),
}
# The mark, and the word.
HEALTH_WORDS = {
    "unknown": ("waiting", _l("not verified yet")),
    "good": ("done", _l("as published")),
    "damaged": ("failed", _l("files differ from the manifest")),
    "failed": ("late", _l("could not be verified")),
}
REQUEST_WORDS = {
    "open": _l("open"),
    "granted": _l("granted"),
    "refused": _l("refused"),
}
