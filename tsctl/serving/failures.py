"""A model that does not load, told in at most five lines: the line of the user's file, the error, the remedy."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from tsctl.errors import CliError

_FRAME = re.compile(r'^ *(?:File )?"?(?P<file>[^"\n]+?\.py)"?, line (?P<line>\d+)(?:, in \S+)?$', re.MULTILINE)
_ERROR = re.compile(r"^(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*)$", re.MULTILINE)
_PLAIN = ("SyntaxError", "IndentationError", "TabError", "ModuleNotFoundError", "ImportError")
_MODULE = re.compile(r"No module named '(?P<name>[^'.]+)")


class Failure(NamedTuple):
    """A failure for people: `message`, then `details` verbatim, then `hint`."""

    message: str
    hint: str
    details: str

    @property
    def error(self) -> CliError:
        return CliError(self.message, self.hint, self.details)


def explain(message: str, details: str, folder: Path | None = None) -> Failure:
    """Explain the daemon's answer to a registration that failed.

    Args:
        message: the first line of the answer.
        details: the rest: a traceback that begins at the user's file, the last lines of a worker, or nothing.
        folder: the folder of the user's files, which tells them from those of libraries; None counts every file.

    Returns:
        The message has the last line of the user's that ran. A traceback that is longer than that stays whole, except
        for errors that the line alone explains: syntax and imports.
    """
    reason = message.partition(": ")[2] if message.startswith("Failed to start workers") else ""
    reason = (reason.partition(": ")[2] or reason).removeprefix("HandlerError: ")  # after `version: 1.0`
    frames = list(_FRAME.finditer(details))
    errors = _ERROR.findall(details)
    error = errors[-1] if errors else reason or message
    own = [frame for frame in frames if folder is None or (folder / frame["file"]).is_file()]
    if not own:
        rest = "" if reason and reason in details and len(details.splitlines()) == 1 else details
        return Failure(reason or message, _hint(error), rest)
    last = own[-1]
    where = f"{last['file'].rpartition('/')[2]}, line {last['line']}"
    if len(frames) > 1 and not error.startswith(_PLAIN):
        return Failure(f"{where}: {error}", _hint(error), details)
    text = details[last.end() :].lstrip("\n").partition("\n")[0].strip()
    return Failure(f"{where}: {error}", _hint(error), f"    {text}" if text and not text.startswith(error) else "")


def _hint(error: str) -> str:
    module = _MODULE.search(error)
    if module is not None:
        return f"mend the import, or install the package: `{sys.executable} -m pip install {module['name']}`"
    return ""


def explained(error: CliError, name: str, folder: Path | None = None) -> CliError:
    """Return an error of the registration of `name` with its explanation; one with a hint of its own stays."""
    if error.hint:
        return error
    if "already registered" in error.message:
        return CliError(error.message, f"choose a name with `--name`, or `tsctl unregister {name}`")
    return explain(error.message, error.details, folder).error
