"""The parameters of a registration, from its target: a path, `module:attribute`, a name in the store, or a URL."""

import os
from pathlib import Path
from typing import Any

BATCH_SIZE = 8  # of files that are served as they are, and of typed handlers, where nothing says one


def parameters_of(target: str | os.PathLike[str], directory: Path) -> dict[str, Any]:
    """Return the parameters of `POST /models` for a target; a relative path begins at `directory`.

    Raises:
        ValueError: there is nothing there, or it cannot be served; the message ends with the remedy.
    """
    # Here: the doors read Python files, which costs 20 ms and is for registrations only.
    from tsctl.daemon.targets import MODULE, TargetError, check_syntax, read_target, split_function

    text = os.fspath(target)
    if "://" in text:
        return {"url": text}
    known = isinstance(target, os.PathLike) or "/" in text or MODULE.fullmatch(text)
    if not known and not (directory / Path(split_function(text)[0]).expanduser()).exists():
        return {"url": text}  # a name in the daemon's model store
    try:
        found = read_target(text, directory)
        if found.kind == "handler" and found.path is not None:
            check_syntax(found.path)
    except TargetError as error:
        raise ValueError(f"{error.message}; {error.hint}" if error.hint else error.message) from None
    given: dict[str, Any] = {"url": found.url, "model_name": found.model_name or None}
    if found.inferred:
        given["fallback_batch_size"] = BATCH_SIZE
    if found.kind != "handler":  # the daemon infers a handler file's own
        given["handler"] = found.handler or None
    return given
