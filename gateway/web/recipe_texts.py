"""What recipes are refused, and what has moved since one was made, in words."""

from gateway.core.recipes import Visibility
from gateway.web.texts import lazy_gettext as _l

RECIPE_ERRORS = {
    "recipe_not_ended_well": _l(
        "Only a job that ended well can become a recipe; this one: %(state)s."
    ),
    "recipe_smoke": _l("A smoke job measures nothing: publish the long job."),
    "recipe_visibility": _l("Choose who may see it."),
    "recipe_title": _l("Type a title of one line, at most 120 characters."),
    "recipe_summary": _l("At most 4,000 characters of plain text."),
    "recipe_model": _l("One line of at most 120 characters."),
    "recipe_tags": _l("At most %(most)s words of letters, digits and . _ + -"),
    "recipe_checkpoints": _l("Type the whole path of a folder, or nothing."),
    "recipe_file_large": _l("The file is larger than %(most)s KiB: no recipe is."),
    "recipe_file_json": _l(
        "The file is no JSON that can be read: it is torn, too deep, not UTF-8, or has a key "
        "twice or a number that is none."
    ),
    "recipe_file_other": _l("The file is JSON, but no recipe that was exported."),
    "recipe_file_version": _l(
        "The file is of another version of the format; this portal reads version %(format)s."
    ),
    "recipe_file_field": _l("The file is no recipe: %(what)s"),
    "recipe_file_fingerprint": _l(
        "The file was changed after it was exported: its fingerprint is another."
    ),
    "recipe_file_missing": _l("Choose a file."),
    "recipe_code_large": _l(
        "The folder is too large to go with a recipe: at most %(files)s files of text,"
        " %(kib)s KiB and %(folders)s folders. Nothing was published: move the code into a folder"
        " of its own, or publish it as a git commit."
    ),
    "recipe_hidden": _l(
        "An administrator has taken this recipe from the Library (“%(why)s”). Only an administrator"
        " can put it there again."
    ),
    "recipe_hide_why": _l("Say why, in one line of at most %(most)s characters."),
    "recipe_not_there": _l("It is not in the Library any more."),
    "recipe_code_empty": _l("There is no file of code or text in that folder."),
}

MOVED = {
    "recipe_template_gone": _l("The template %(name)s is not here: its fields are left empty."),
    "recipe_template_unknown": _l("Which version of the template %(name)s was used is not known."),
    "recipe_template_changed": _l("The template %(name)s has changed since."),
    "recipe_field_gone": _l("The template has no field %(name)s any more: left out."),
    "recipe_value_refused": _l(
        "The value of %(name)s does not pass the rules of the form: left empty."
    ),
    "recipe_environment_gone": _l(
        "The environment %(name)s is not offered to you, or not any more: none is chosen."
    ),
    "recipe_snapshot_gone": _l(
        "The snapshot %(name)s is not shared with you, or gone: none is chosen."
    ),
    "recipe_environment_moved": _l(
        "The environment %(name)s means something else than when this ran."
    ),
    "recipe_environment_changed": _l("The packages of %(name)s have changed since this ran."),
    "recipe_environment_unlocked": _l(
        "No check has seen which packages %(name)s held when this ran."
    ),
    "recipe_dataset_gone": _l(
        "The dataset %(name)s is not there for you (unknown, withdrawn, or you are not a "
        "reader): left out."
    ),
    "recipe_dataset_newer": _l("This used %(name)s; there is %(newest)s now."),
    "recipe_dataset_differs": _l("The files of %(name)s are not those that this ran on."),
    "recipe_partition_gone": _l("The partition %(name)s is not open to you: %(now)s is chosen."),
    "recipe_gpu_gone": _l("There is no %(name)s for you here: no type of card is chosen."),
    "recipe_qos_gone": _l("The QoS %(name)s is not open to you: %(now)s is chosen."),
    "recipe_price_changed": _l("The whole time limit cost %(then)s then and costs %(now)s now."),
    "recipe_code_captured": _l(
        "Its code goes with it: on the recipe's page it can be put into a new folder of yours."
    ),
    "recipe_code": _l("It ran the git commit %(commit)s: check it out in your working folder."),
    "recipe_code_dirty": _l(
        "It ran the git commit %(commit)s, with changes that were not committed: it may not "
        "repeat exactly."
    ),
}

VISIBILITY = {
    Visibility.ME: _l("only you"),
    Visibility.GROUP: _l("your group"),
    Visibility.SITE: _l("the whole site"),
}

CHECKPOINTS = {
    "readable": _l("You can read the checkpoints."),
    "missing": _l("The folder of the checkpoints is not there any more."),
    "unknown": _l("Nobody could be asked now whether you can read the checkpoints."),
}
NOT_READABLE = _l("You may not read the folder of the checkpoints: ask its owner.")
FIGURES = {
    "step_seconds": _l("Time of a step"),
    "tokens_per_second": _l("Tokens a second"),
}
