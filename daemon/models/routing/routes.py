"""The routes of all models, and the random numbers that choose by them."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from hashlib import blake2b
from random import Random

from tsctl.daemon.core.errors import Conflict
from tsctl.daemon.models.routing.route import IP, Route


class Agreement(Enum):
    """The results of the copies of requests that a shadow gets, in the words of counters and documents.

    same        the shadow's answer has the same status and bytes
    close       JSON of one shape, whose numbers differ by at most a thousandth, as of another order of additions
    different   anything else
    failed      the shadow failed and the other version did not
    dropped     no idle time in time, the shadow refused, or there was no room for the answers

    How much the answer of a shadow is like that of the version that answered the client.
    """

    SAME = "same"
    CLOSE = "close"
    DIFFERENT = "different"
    FAILED = "failed"


DROPPED = "dropped"
RESULTS = (*(each.value for each in Agreement), DROPPED)


Weights = Sequence[tuple[str, float]]  # versions, and their weights: more than 0, of any sum

_RANGE = float(2**64)


def choose(weights: Weights, draw: float) -> str:
    """The choice of a version by weights: at random, or always the same one for a key.

    Both are pure. The choice for a key is weighted rendezvous hashing (Schindelhauer, Schomaker: Weighted Distributed
    Hash Tables, SPAA 2005): each version draws a score that depends on the model, the version and the key alone, and is
    scaled by the weight; the highest score wins. A key therefore moves only to a version whose weight grew relative to
    that of its own: if one weight grows and the others stay, keys move to that version alone.

    Args:
        weights: at least one.
        draw: from 0 up to, and without, 1.
    """
    left = draw * sum([weight for _, weight in weights])
    for version, weight in weights:
        left -= weight
        if left < 0.0:
            return version
    return weights[-1][0]  # rounding


def choose_for(weights: Weights, model: str, key: str) -> str:
    """Return the version of a key: the same one as long as the weights stay.

    Args:
        weights: at least one.
        key: the client's name, such as its address.
    """
    if len(weights) == 1:
        return weights[0][0]
    return min(weights, key=lambda each: -math.log(_uniform(model, each[0], key)) / each[1])[0]


def _uniform(model: str, version: str, key: str) -> float:
    """Return a number between 0 and 1, neither of them, that depends on the texts alone."""
    text = f"{model}\0{version}\0{key}".encode("utf-8", "surrogateescape")
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") + 0.5) / _RANGE


class RoutedVersion(Conflict):
    """The version cannot be unregistered: the model's route sends requests to it.

    Args:
        share: its part of the requests, in words.
    """

    def __init__(self, name: str, version: str, share: str) -> None:
        super().__init__(
            name,
            version,
            f"The route of model {name} sends {share} to version {version}. Take them away first:"
            f" `tsctl route {name}` with other versions, or `tsctl default {name}/VERSION`, which removes the route.",
        )


class Routes:
    """Model → route; a model without one is answered by its default version.

    Args:
        random: draws the version of requests that no key keeps at theirs.

    Attributes:
        by_model: read by every request; changed by `put`, `drop` and `restore` only.
        copies: model and shadow → how many copies of requests ended how; only rises.
        copier: called after the route of a model has changed, to copy requests as it says; None if nobody does.
    """

    def __init__(self, random: Random | None = None) -> None:
        self.random = random or Random()
        self.by_model: dict[str, Route] = {}
        self.copies: dict[tuple[str, str], Counter[str]] = {}
        self.copier: Callable[[str, Route | None], None] | None = None

    def __repr__(self) -> str:
        return f"<Routes {', '.join(f'{name}: {route}' for name, route in self.by_model.items())}>"

    def __bool__(self) -> bool:
        return bool(self.by_model)

    def __contains__(self, name: str) -> bool:
        return name in self.by_model

    def of(self, name: str) -> Route | None:
        """Return the route of a model, None without one."""
        return self.by_model.get(name)

    def put(self, name: str, route: Route | None) -> None:
        """Set the route of a model, or remove it."""
        self.by_model.pop(name, None)
        if route is not None:
            self.by_model[name] = route
        if self.copier is not None:
            self.copier(name, route)

    def drop(self, name: str, version: str) -> None:
        """Take a version out of the route of a model, which ends with its last version."""
        route = self.by_model.get(name)
        if route is None or version not in route.versions:
            return
        weights = tuple(each for each in route.weights if each[0] != version)
        shadow = "" if route.shadow == version else route.shadow
        self.put(name, replace(route, weights=weights, shadow=shadow) if weights else None)

    def restore(self, routes: Mapping[str, Route]) -> None:
        """Take the routes of an earlier run, whose versions are not registered yet."""
        for name, route in routes.items():
            self.put(name, route)

    def check_unused(self, name: str, version: str) -> None:
        """Raise RoutedVersion if the route of a model needs a version."""
        route = self.by_model.get(name)
        if route is not None and version in route.versions:
            share = f"{route.share(version):.0%} of the requests" if version != route.shadow else "copies of requests"
            raise RoutedVersion(name, version, share)

    def choose(self, weights: Weights, name: str, key: str) -> str:
        """Return the version of a request: by its key, or at random if that is empty."""
        if key:
            return choose_for(weights, name, key)
        return choose(weights, self.random.random())


def key_of(route: Route, headers: Sequence[tuple[str, str]], peer: str) -> str:
    """Return the text that keeps a client at its version; empty if the route does not, or the request has none.

    Args:
        peer: ADDRESS:PORT, or another name of a client that has no address.
    """
    if not route.sticky:
        return ""
    if route.sticky == IP:
        return (peer.rpartition(":")[0] or peer).strip("[]") if not peer.startswith("pid:") else peer
    wanted = route.header
    for name, value in headers:
        if name.lower() == wanted:
            return value
    return ""
