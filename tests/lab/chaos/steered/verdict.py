"""The verdict about steered requests: each answer alone, and all of a model against the routes of their moments.

An answer names its model, its version and its process, and repeats the words of its request. Pure functions.
"""

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from tests.lab.harness.peer import Unanswered
from tests.lab.harness.verdict import Broken
from tsctl.daemon.models.routing.routes import choose_for

BAD = "3.0"  # fails for half of its requests
FAILURE = "the bad version"
HELD = "m2"  # an operator unloads it, and loads it
DEVIATIONS = 5.0  # of the binomial distribution: beyond them are 6 of 10 million shares
MOST_REFUSED = 0.01  # of all requests


class Kind(StrEnum):
    """How an attempt ended."""

    RIGHT = "right"
    FAILED = "failed by the bad version"
    DIED = "told that two workers were killed with it"
    REFUSED = "asked to come again: 429 or 503 with Retry-After, or UNAVAILABLE"
    REPLACED = "over gRPC, refused while the daemon was replaced"
    CUT_OFF = "cut off, as the daemon was killed"
    HELD = "told that an operator has unloaded the model"


AGAIN = frozenset({Kind.REFUSED, Kind.REPLACED, Kind.CUT_OFF})  # the client asks again


class Asked(NamedTuple):
    """A request; `version` is empty if it names none, `user` keeps its client at a version where the route does so."""

    model: str
    version: str
    user: str
    words: str


class Told(NamedTuple):
    """The end of an attempt.

    Attributes:
        status: of HTTP or gRPC, such as 200, OK or UNAVAILABLE; empty if the connection ended without an answer.
        text: the body, or the sentence of the error.
        retry_after: whether the answer says when to come again.
        killed, replaced: whether the daemon was killed, or replaced, since the connection was opened.
        last: whether the answer says that it is the last of its connection: then a daemon gave it that has been
            replaced, and knows the route of then.
    """

    status: str
    text: str
    retry_after: bool = False
    killed: bool = False
    replaced: bool = False
    last: bool = False


class Seen(NamedTuple):
    """An attempt that named no version: between which moments, of which user, and by which version, if any."""

    asked: float
    answered: float
    user: str
    version: str


class Epoch(NamedTuple):
    """A time in which the route of a model did not change; `weights` is empty while a rollout steered."""

    begun: float
    ended: float
    versions: frozenset[str]
    weights: tuple[tuple[str, float], ...] = ()
    sticky: bool = False


def judge(asked: Asked, told: Told) -> tuple[Kind, str, int]:
    """Return how an attempt ended, and the version and the process that answered: empty, and 0, if none did.

    Raises:
        Unanswered: no answer came, though the daemon was there.
        Broken: the answer must not be.
    """
    if told.status in ("200", "OK"):
        return _answered(asked, told.text)
    if FAILURE in told.text and told.status in ("503", "INTERNAL") and asked.version in ("", BAD):
        return Kind.FAILED, BAD, 0
    if "The worker died again" in told.text:
        return Kind.DIED, "", 0
    if "An operator unloaded it" in told.text and asked.model == HELD:
        return Kind.HELD, "", 0
    if told.killed and told.status in ("", "UNAVAILABLE", "CANCELLED"):
        return Kind.CUT_OFF, "", 0
    if told.replaced and told.status in ("UNAVAILABLE", "CANCELLED"):
        return Kind.REPLACED, "", 0
    if told.retry_after and told.status in ("429", "503", "UNAVAILABLE", "RESOURCE_EXHAUSTED"):
        return Kind.REFUSED, "", 0
    if not told.status:
        raise Unanswered(f"{asked} was not answered: {told.text}")
    raise Broken(f"{asked} was answered {told.status}: {told.text[:300]}")


def _answered(asked: Asked, text: str) -> tuple[Kind, str, int]:
    model, version, pid, words = (*text.split(" ", 3), "", "", "", "")[:4]
    if (model, words) != (asked.model, asked.words) or not pid.isdecimal():
        raise Broken(f"{asked} was answered wrong: {text[:200]!r}")
    if asked.version and version != asked.version:
        raise Broken(f"{asked} was answered by version {version}")
    return Kind.RIGHT, version, int(pid)


def hold(model: str, epochs: Sequence[Epoch], seen: Sequence[Seen]) -> tuple[Counter[str], list[str]]:
    """Hold what was asked without a version against the routes of a model.

    Args:
        epochs: in their order; between two of them the route was being changed, and both may count.

    Returns:
        Counts of what was held against what, and a sentence for each thing that must not be.
    """
    told: Counter[str] = Counter()
    wrong: list[str] = []
    # An epoch may count from the end of the one before until the beginning of the next.
    counts_from = [-math.inf, *(each.ended for each in epochs[:-1])][: len(epochs)]
    counts_until = [*(each.begun for each in epochs[1:]), math.inf][: len(epochs)]
    spans = list(zip(epochs, counts_from, counts_until, strict=True))
    for each in seen:
        permitted = {v for e, low, high in spans if low < each.answered and each.asked < high for v in e.versions}
        if each.version and each.version not in permitted:
            wrong.append(f"{model}: {each} is of none of {sorted(permitted)}")
    for epoch in epochs:
        asked = [each for each in seen if epoch.begun < each.asked < epoch.ended]
        sure = [each for each in asked if each.version and each.answered < epoch.ended]
        if not epoch.weights:
            told["answers while a rollout steered"] += len(sure)
        elif epoch.sticky:
            told["answers to clients that stay at their version"] += len(sure)
            moved = [each for each in sure if choose_for(epoch.weights, model, each.user) != each.version]
            wrong += [f"{model}: {each} is not where {epoch} keeps its user" for each in moved]
        else:
            told["answers held against weights"] += len(sure)
            told["requests beside them, of which it is not sure who had them"] += len(asked) - len(sure)
            wrong += [f"{model}: {each}" for each in unlikely(epoch, sure, len(asked) - len(sure))]
    return told, wrong


def unlikely(epoch: Epoch, sure: Sequence[Seen], unsure: int) -> list[str]:
    """Return a sentence for each version whose share of the answers is beyond the interval of its weight.

    Args:
        unsure: requests of the epoch that have no answer, or had it after its end: any version may have had them.
    """
    wrong, counts = [], Counter(each.version for each in sure)
    total, count = sum(weight for _, weight in epoch.weights), len(sure) + unsure
    for version, weight in epoch.weights:
        share = weight / total
        most = DEVIATIONS * math.sqrt(count * share * (1 - share)) + 1
        if not counts[version] - most <= share * count <= counts[version] + unsure + most:
            wrong.append(f"{version} has {counts[version]} of {len(sure)} answers, and {unsure} are unsure, in {epoch}")
    return wrong


def bounds(kinds: Counter[Kind], killed: int, cut_off: int, replaced: int) -> list[str]:
    """Return a sentence for each kind of refusal that is too frequent.

    Args:
        killed: workers that were killed.
        cut_off: the most attempts that the killed daemons can have cut off.
        replaced: the most attempts over gRPC that the replaced daemons can have refused.
    """
    wrong = []
    if kinds[Kind.REFUSED] > MOST_REFUSED * kinds.total():
        wrong.append(f"{kinds[Kind.REFUSED]} of {kinds.total()} attempts ended so: {Kind.REFUSED}")
    if kinds[Kind.REPLACED] > replaced:
        wrong.append(f"{kinds[Kind.REPLACED]} attempts ended so: {Kind.REPLACED}; at most {replaced} can have")
    if kinds[Kind.DIED] > killed / 2:
        wrong.append(f"{kinds[Kind.DIED]} requests were told of two workers each, and {killed} were killed")
    if kinds[Kind.CUT_OFF] > cut_off:
        wrong.append(f"{kinds[Kind.CUT_OFF]} attempts were cut off, and at most {cut_off} can have been")
    return wrong
