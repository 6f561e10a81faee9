"""A model that does not load, told in at most five lines: the line of the user's file, the error, the remedy."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError
from tsctl.serving.missing import hint_for_import

_FRAME = re.compile(
    r'^ *(?:File )?"?(?P<file>[^"\n]+?\.py)"?, line (?P<line>\d+)(?:, in (?P<function>\S+))?$', re.MULTILINE
)
_ERROR = re.compile(r"^(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*)$", re.MULTILINE)
_PLAIN = ("SyntaxError", "IndentationError", "TabError", "ModuleNotFoundError", "ImportError")
_MOST_FRAMES = 6  # named in the path to the error


class Failure(NamedTuple):
    """A failure for people: `message`, then `details` verbatim, then `hint`."""

    message: str
    hint: str
    details: str

    @property
    def error(self) -> CliError:
        return CliError(self.message, self.hint, self.details)


def folder_of(target: ServeTarget) -> Path | None:
    """Return the folder of the user's files; None for an archive."""
    return None if target.path is None or not target.inferred else target.path.parent


def explain(message: str, details: str, folder: Path | None = None, target: str = "") -> Failure:
    """Explain the daemon's answer to a registration that failed.

    Args:
        message: the first line of the answer.
        details: the rest: a traceback that begins at the user's file, the last lines of a worker, or nothing.
        folder: the folder of the user's files, which tells them from those of libraries; None counts every file.
        target: the target as it was typed, for the command that shows the whole traceback; empty for none.

    Returns:
        The message has the last line of the user's that ran, and the details have its text, the calls that led
        there, and the next line of the error's own text. Errors of syntax and imports need no calls.
    """
    reason = message.partition(": ")[2] if message.startswith("Failed to start workers") else ""
    reason = (reason.partition(": ")[2] or reason).removeprefix("HandlerError: ")  # after `version: 1.0`
    frames = list(_FRAME.finditer(details))
    errors = list(_ERROR.finditer(details))
    error = errors[-1]["error"] if errors else reason or message
    own = [frame for frame in frames if folder is None or (folder / frame["file"]).is_file()]
    if not own:
        rest = "" if reason and reason in details and len(details.splitlines()) == 1 else details
        return Failure(reason or message, hint_for_import(error, folder), rest)
    last = own[-1]
    text = details[last.end() :].lstrip("\n").partition("\n")[0].strip()
    lines = [text] if text and not text.startswith(error) else []
    whole = ""
    if len(frames) > 1 and not error.startswith(_PLAIN):
        lines.append(_calls(frames))
        whole = f"`tsctl check {target}` shows the whole traceback" if target else ""
    if errors:
        lines += [line.strip() for line in details[errors[-1].end() :].strip().splitlines()[:1]]
    where = f"{_name(last['file'])}, line {last['line']}"
    return Failure(
        f"{where}: {error}", hint_for_import(error, folder) or whole, "\n".join(f"    {line}" for line in lines)
    )


def _calls(frames: Sequence[re.Match[str]]) -> str:
    """Return the calls that led to an error in one line: `load (h.py:3) → read (files.py:9)`."""
    named = [f"{frame['function'] or '<module>'} ({_name(frame['file'])}:{frame['line']})" for frame in frames]
    if len(named) > _MOST_FRAMES:
        named[1 : len(named) - _MOST_FRAMES + 2] = ["…"]
    return " → ".join(named)


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def explained(error: CliError, name: str, folder: Path | None = None, target: str = "") -> CliError:
    """Return an error of the registration of `name` with its explanation; one with a hint of its own stays.

    Args:
        folder, target: as in `explain`.
    """
    if error.hint:
        return error
    if "already registered" in error.message:
        return CliError(error.message, f"choose a name with `--name`, or `tsctl unregister {name}`")
    return explain(error.message, error.details, folder, target).error
