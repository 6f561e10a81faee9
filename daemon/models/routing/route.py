"""A route: the weights of a model's versions, and how clients stay with theirs.

    1.0=90 2.0=10                       nine of ten requests to 1.0, at random
    … sticky ip                         a client stays with its version, by its address
    … sticky header:x-session-id        or by the value of a header; requests without the header are drawn at random
    … shadow 3.0, sample 0.05           of the requests, 5 % are copied to 3.0, and those answers are dropped

The texts are those of `tsctl route` and of `PUT /models/MODEL/route`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.marfile import VERSION

IP, HEADER = "ip", "header"
SESSION = "x-session-id"  # the header of `sticky header`
MOST_WEIGHT = 1e6
MOST_VERSIONS = 16
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]{1,64}")  # RFC 9110, section 5.6.2, in lower case


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The route of one model.

    Attributes:
        weights: versions, and their weights: more than 0, of any sum.
        sticky: empty, `ip`, or `header:NAME` with the name in lower case.
        shadow: the version that gets copies of requests; empty for none.
        sample: the share of the requests that is copied, from 0 to 1.
        allow_effects: copies go also to a shadow that is not declared repeatable (`retry`).
    """

    weights: tuple[tuple[str, float], ...]
    sticky: str = ""
    shadow: str = ""
    sample: float = 1.0
    allow_effects: bool = False

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions that the route needs: those with a weight, and the shadow."""
        named = tuple(version for version, _ in self.weights)
        return (*named, self.shadow) if self.shadow else named

    @property
    def main(self) -> str:
        """Return the version with the largest weight, of equal ones the first."""
        return max(self.weights, key=lambda each: each[1])[0]

    @property
    def header(self) -> str:
        """Return the header whose value keeps a client at its version; empty without one."""
        return self.sticky.partition(":")[2]

    def share(self, version: str) -> float:
        """Return the share of the requests that a version answers, from 0 to 1."""
        return dict(self.weights).get(version, 0.0) / sum(weight for _, weight in self.weights)

    def __str__(self) -> str:
        parts = [" ".join(f"{version}={weight:g}" for version, weight in self.weights)]
        if self.sticky:
            parts.append(f"sticky by {self.header or 'address'}")
        if self.shadow:
            parts.append(f"{self.sample * 100:g} % copied to {self.shadow}")
        return ", ".join(parts)


def parse_route(
    weights: str | Mapping[str, Any], sticky: str = "", shadow: str = "", sample: str | float | None = None,
    *, allow_effects: bool = False,
) -> Route:  # fmt: skip
    """Return the route that a client asks for.

    Args:
        weights: `VERSION=WEIGHT`, separated by spaces or commas, or version → weight; a weight of 0 counts as none.
        sticky: empty, `ip`, `header`, or `header:NAME`.
        sample: `5%`, or a share from 0 to 1.

    Raises:
        BadRequest: a value is none, or contradicts another.
    """
    pairs = _pairs(weights) if isinstance(weights, str) else weights.items()
    parsed = tuple((version, weight) for version, weight in _weights(pairs) if weight)
    if not parsed:
        raise BadRequest("The route has no version with a weight; write VERSION=WEIGHT, such as 1.0=90 2.0=10.")
    if shadow and shadow in dict(parsed):
        raise BadRequest(f"{shadow} has a weight and is the shadow, too; a shadow answers nobody.")
    if sample is not None and not shadow:
        raise BadRequest("sample is given, and no shadow whose share it would be.")
    share = 1.0 if sample is None else parse_share(sample)
    return Route(
        weights=parsed, sticky=_sticky(sticky), shadow=shadow, sample=share,
        allow_effects=bool(shadow) and allow_effects,
    )  # fmt: skip


def is_valid(route: Route) -> bool:
    """Return whether requests can be shared by these weights: another program may have written the snapshot."""
    return bool(route.weights) and all(0 < weight <= MOST_WEIGHT for _, weight in route.weights)


def parse_share(text: str | float) -> float:
    """Return a share from 0 to 1 of `5%` or `0.05`.

    Raises:
        BadRequest: the text is neither.
    """
    try:
        percent = isinstance(text, str) and text.strip().endswith("%")
        share = float(str(text).strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise BadRequest(f"sample is `{text}`; expected a share such as 5% or 0.05, more than 0 and at most 100%.")
    return share


def shown_route(route: Route) -> dict[str, Any]:
    """Return a route by the names of its parameters; without those that are not set."""
    shown: dict[str, Any] = {"weights": {version: _plain(weight) for version, weight in route.weights}}
    if route.sticky:
        shown["sticky"] = route.sticky
    if route.shadow:
        shown |= {"shadow": route.shadow, "sample": route.sample, "allow_effects": route.allow_effects}
    return shown


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for each in text.replace(",", " ").split():
        version, equals, weight = each.rpartition("=")
        if not equals:
            raise BadRequest(f"`{each}` has no weight; write VERSION=WEIGHT, such as {each}=10.")
        yield version, weight


def _weights(pairs: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, float]]:
    seen: set[str] = set()
    for version, value in pairs:
        if not VERSION.fullmatch(version):
            raise BadRequest(f"`{version}` is not a version.")
        if version in seen:
            raise BadRequest(f"{version} has two weights.")
        seen.add(version)
        if len(seen) > MOST_VERSIONS:
            raise BadRequest(f"The route has more than {MOST_VERSIONS} versions.")
        try:
            weight = -1.0 if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):  # the last of a whole number beyond any float
            weight = -1.0
        if not 0 <= weight <= MOST_WEIGHT:
            raise BadRequest(
                f"The weight of {version} is `{value!s:.40}`; expected a number from 0 to {MOST_WEIGHT:.0f}."
            )
        yield version, weight


def _sticky(text: str) -> str:
    kind, colon, name = text.strip().lower().partition(":")
    if not kind and not colon:
        return ""
    if kind == IP and not colon:
        return IP
    name = name if colon else SESSION
    if kind != HEADER or not _HEADER_NAME.fullmatch(name):
        raise BadRequest(f"sticky is `{text}`; expected ip, header, or header:NAME.")
    return f"{HEADER}:{name}"


def _plain(weight: float) -> float | int:
    return int(weight) if weight == int(weight) else weight
