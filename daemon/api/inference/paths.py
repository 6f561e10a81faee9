"""The paths of the inference routes (routes.py): which of them predict, and which model they name."""

INVOKE = "invoke"
LEGACY = "predict"
VERBS = ("predict", "explain")  # of KServe, after the model's name and a colon


def predicts(path: list[str]) -> bool:
    """Return whether a path is an inference route: the management API shares `/models`, `/v1` and `/v2` with these."""
    match path:
        case ["models", _, last]:
            return last == INVOKE
        case ["v1", "models"] | ["v1", "completions"] | ["v1", "chat", "completions"]:
            return True
        case ["v1", "models", last]:
            return ":" not in last or last.rpartition(":")[2] in VERBS
        case ["v2", "repository", *_]:
            return False
    return path[:1] not in (["models"], ["v1"])


def model_named(path: list[str]) -> str | None:
    """Return the name of the model in a path of an inference route; None if another part of the request names it."""
    match path:
        case ["v2", "models", "stats"]:  # the statistics of all models
            return None
        case ["predictions" | "explanations" | "ready", name, *_] | ["v2", "models", name, *_]:
            return name
        case ["v1", "models", last]:
            name, colon, verb = last.rpartition(":")
            return name if colon and verb in VERBS else last
        case ["models", name, "invoke"] | [name, "predict"] | [name, _, "predict"]:
            return name
    return None
