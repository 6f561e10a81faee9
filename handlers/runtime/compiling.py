"""Attributes of classes for mypyc, which compiles their modules for a wheel; nothing without the compiler."""

from collections.abc import Callable
from typing import Any

try:
    from mypy_extensions import mypyc_attr as mypyc_attr
except ImportError:  # only the compiler needs the package

    def mypyc_attr(*attrs: str, **kwattrs: object) -> Callable[[Any], Any]:  # type: ignore[misc]  # noqa: ARG001
        return lambda decorated: decorated
