"""The paths of the inference routes (routes.py): which of them predict, and which model they name."""

from tsctl.daemon.declarations import PathFacts
from tsctl.daemon.tables import PROTOCOLS

INVOKE = "invoke"
LEGACY = "predict"
VERBS = ("predict", "explain")  # of KServe, after the model's name and a colon


def facts_of(path: list[str]) -> PathFacts | None:
    """Return the facts of a path of an extension's protocol; None for one of the core's own routes."""
    for protocol in PROTOCOLS:
        if path[:1] and path[0] in protocol.segments and (facts := protocol.facts(path)) is not None:
            return facts
    return None


def predicts(path: list[str]) -> bool:
    """Return whether a path is an inference route: the management API shares first segments with these."""
    if (facts := facts_of(path)) is not None:
        return not facts.manages
    match path:
        case ["models", _, last]:
            return last == INVOKE
        case ["v1", "models", last]:
            return ":" not in last or last.rpartition(":")[2] in VERBS
    return path[:1] not in (["models"], ["v1"])


def model_named(path: list[str]) -> str | None:
    """Return the name of the model in a path of an inference route; None if another part of the request names it."""
    if (facts := facts_of(path)) is not None:
        return facts.model
    match path:
        case ["predictions" | "explanations" | "ready", name, *_] | ["v2", "models", name, *_]:
            return name
        case ["v1", "models", last]:
            name, colon, verb = last.rpartition(":")
            return name if colon and verb in VERBS else last
        case ["models", name, "invoke"] | [name, "predict"] | [name, _, "predict"]:
            return name
    return None
