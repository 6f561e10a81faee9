"""Tracebacks for the author of a handler: they begin at a file of the model, and no path names a directory of ours.

File "handler.py", line 2, in predict          the model's own files
File "torch/nn/modules/module.py", line 1773   modules, as they are imported
"""

import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from tsctl.handlers.requests.excerpt import LONGEST_TRACEBACK, message_of
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.texts.encodable import class_of

_OURS = f"{Path(__file__).parent.parent}/"
_PACKAGE = _OURS.removesuffix("tsctl/handlers/")
_COMPILED = "tsctl/handlers/"  # the modules that mypyc compiles name their files so
_IMPORTING = "<frozen importlib"


def describe_error(error: BaseException, model_dir: str = "", *, bare: bool = False) -> str:
    """Return an exception with its traceback as Python prints it, cut in its middle: the last lines matter most.

    Of an exception that cannot be printed so, its class and its text.

    Args:
        model_dir: the directory of the handler's files; empty if none is known.
        bare: without frames and causes, for an error that explains itself.
    """
    try:
        text = _printed(error, model_dir, bare)
    except BaseException:  # noqa: BLE001 - the exception's class may raise anything, wherever Python asks it something
        return f"{class_of(error)}: {message_of(error)} (its traceback cannot be printed)"
    text = text.removeprefix(f"{HandlerError.__module__}.") if bare else text  # a sentence, not a place of ours
    if len(text) <= LONGEST_TRACEBACK:
        return text
    half = LONGEST_TRACEBACK // 2
    return f"{text[:half]}… ({len(text) - 2 * half} characters more) …{text[-half:]}"


def _printed(error: BaseException, model_dir: str, bare: bool) -> str:
    if bare:
        shown = traceback.TracebackException(type(error), error, None)
        shown.__cause__ = shown.__context__ = None
    else:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
    for each in _related(shown):
        each.stack = traceback.StackSummary.from_list(_author_frames(each.stack, model_dir))
        file = getattr(each, "filename", None)  # of a SyntaxError
        if isinstance(file, str):
            each.filename = _short(file, model_dir)
    return "".join(shown.format()).rstrip()


def has_author_frames(trace: TracebackType | None) -> bool:
    """Return whether code other than ours and Python's import machinery has run."""
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return False


def _related(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yield an exception, its causes, and the members of groups."""
    waiting: list[traceback.TracebackException | None] = [shown]
    while waiting:
        each = waiting.pop()
        if each is not None:
            yield each
            waiting += [each.__cause__, each.__context__, *(each.exceptions or ())]


def _author_frames(frames: Sequence[traceback.FrameSummary], model_dir: str) -> list[traceback.FrameSummary]:
    """Return the frames from the model's first file on, else from the first that is not ours, else all."""
    first = next((index for index, each in enumerate(frames) if _is_within(each.filename, model_dir)), None)
    if first is None:
        first = next((index for index, each in enumerate(frames) if not _is_ours(each.filename)), 0)
    kept = list(frames[first:])
    for each in kept:
        _ = each.line  # read by its whole path, before that is cut
        each.filename = _short(each.filename, model_dir)
    return kept


def _is_ours(file: str) -> bool:
    return file.startswith((_OURS, _COMPILED, _IMPORTING))


def _is_within(file: str, model_dir: str) -> bool:
    return bool(model_dir) and file.startswith(model_dir.rstrip("/") + "/") and not _is_ours(file)


def _short(file: str, model_dir: str) -> str:
    if _is_ours(file):
        return file.removeprefix(_PACKAGE)
    bases = [base.rstrip("/") + "/" for base in (model_dir, *sys.path) if base]
    fitting = [base for base in bases if file.startswith(base) and len(base) > 1]
    return file.removeprefix(max(fitting, key=len)) if fitting else file
