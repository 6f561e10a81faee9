"""One file for all models: `tsctl apply`, `export` and `rollback`.

state    the registered versions, from the daemon; the same classes describe a file's
node     a part of a file, with its line
file     a file's text → the state that it asks for; errors name the line and the key
route    a model's route in a file
plan     two states → the steps from one to the other, in an order that drops no serving version
steps    each kind of step: its requests, and its lines for people
run      executes steps, and undoes them if one fails
export   a state → a file's text
"""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class ApplyCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {
        "apply": ("Models", "Make the models as a file says."),
        "export": ("Models", "Write the models as such a file."),
        "rollback": ("Models", "Return a model to its state before the latest change."),
    }
    synonyms: Mapping[str, str] = {
        "sync": "apply", "dump": "export", "save": "export", "undo": "rollback", "revert": "rollback",
    }  # fmt: skip
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "apply": (
            ("See the changes first", "tsctl apply models.yaml --dry-run"),
            ("Make them, and keep models that the file does not name", "tsctl apply models.yaml --keep-others"),
        ),
        "export": (
            ("Write the models as they are", "tsctl export > models.yaml"),
            ("Write one model", "tsctl export scorer -o scorer.yaml"),
        ),
        "rollback": (
            ("See what would change", "tsctl rollback scorer --dry-run"),
            ("Return to the version and settings before", "tsctl rollback scorer"),
        ),
    }


COMMAND_LINE = ApplyCommandLine()
