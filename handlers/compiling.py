"""Attributes of classes for mypyc, which compiles their modules for a wheel; nothing at run time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*_attrs: str, **_kwattrs: object) -> Callable[[Any], Any]:
        return lambda decorated: decorated
