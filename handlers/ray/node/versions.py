"""The versions of Python and tsctl: a node must have those of the daemon's machine."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class Versions(NamedTuple):
    """The versions of a machine; Ray itself compares its own."""

    python: str
    tsctl: str

    def __str__(self) -> str:
        return f"Python {self.python} and tsctl {self.tsctl}"


def versions_here() -> Versions:
    """Return the versions of this process."""
    try:
        ours = version("tsctl")
    except PackageNotFoundError:
        ours = "unknown"
    return Versions(f"{sys.version_info.major}.{sys.version_info.minor}", ours)


def mismatch(node: str, there: Versions, here: Versions) -> str:
    """Return a sentence on the difference between a node and the daemon's machine; empty without one."""
    if there == here:
        return ""
    return f"node {node} has {there}, the daemon's machine {here}: install the same on all nodes"
