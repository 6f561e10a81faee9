"""What a class says to mypyc, which compiles its module for a wheel; without the compiler, it is said to nobody."""

from collections.abc import Callable
from typing import Any

try:
    from mypy_extensions import mypyc_attr as mypyc_attr
except ImportError:  # only the compiler needs the package

    def mypyc_attr(*attrs: str, **kwattrs: object) -> Callable[[Any], Any]:  # type: ignore[misc]  # noqa: ARG001
        return lambda decorated: decorated
