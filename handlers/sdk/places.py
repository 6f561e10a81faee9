"""Where the author of a handler finds a function or class: `handler.py, line 3`."""

import inspect
from pathlib import Path
from typing import Any


def place_of(thing: Any) -> str:
    """Return the beginning of a sentence on a function, method or class, such as `handler.py, line 3: `.

    Empty where the place is unknown, as of a builtin function.
    """
    found = _line_of(thing)
    return f"{Path(found[0]).name}, line {found[1]}: " if found else ""


def _line_of(thing: Any) -> tuple[str, int] | None:
    if inspect.isclass(thing):
        try:
            return inspect.getsourcefile(thing) or thing.__module__, inspect.getsourcelines(thing)[1]
        except (OSError, TypeError):
            methods = (_line_of(value) for each in thing.__mro__[:-1] for value in vars(each).values())
            return next(filter(None, methods), None)
    if not callable(thing):
        return None
    code = getattr(inspect.unwrap(getattr(thing, "__func__", thing)), "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)
