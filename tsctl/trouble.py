"""Versions in trouble, as the daemon tells (daemon/models/reporting/trouble.py): first in lists, with the reasons."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

STYLE = "red"  # of a name whose version is in trouble
_Version = TypeVar("_Version", bound=Mapping[str, Any])


def troubles_of(version: Mapping[str, Any]) -> list[str]:
    """Return the troubles of a version in a few words each, the worst first."""
    return list(version["troubles"])


def worst_first(versions: Iterable[_Version]) -> list[_Version]:
    """Return the versions in their order, those in trouble before the others."""
    return sorted(versions, key=lambda each: not troubles_of(each))


def beside_state(version: Mapping[str, Any]) -> str:
    """Return the troubles that the word for the version's state does not tell already; empty without any."""
    return ", ".join(each for each in troubles_of(version) if each != version["state"])
