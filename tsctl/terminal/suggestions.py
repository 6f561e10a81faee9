"""Suggestions for a verb or a model that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient
from tsctl.errors import CliError

# Words of other programs → the verb with the same effect. None leads to `stop`.
SYNONYMS: dict[str, str] = {
    "add": "register", "deploy": "register", "push": "register", "replace": "register",
    "delete": "unregister", "remove": "unregister", "rm": "unregister", "undeploy": "unregister",
    "list": "ls", "models": "ls", "ps": "ls",
    "get": "describe", "info": "describe", "inspect": "describe", "show": "describe",
    "ask": "predict", "call": "predict", "curl": "predict", "infer": "predict", "invoke": "predict",
    "reload": "restart", "update": "upgrade",
    "benchmark": "bench", "load-test": "bench", "loadtest": "bench", "ab": "bench", "wrk": "bench",
    "autotune": "tune",
    "archiver": "archive", "pack": "archive", "package": "archive", "build": "archive",
    "create": "new", "init": "new", "scaffold": "new",
    "log": "logs", "tail": "logs",
    "edit": "set", "configure": "set",
    "workers": "scale", "resize": "scale",
    "settings": "config", "env": "config",
    "health": "status", "ping": "status",
    "up": "start", "daemon": "start", "launch": "start", "torchserve": "start",
    "foreground": "run",
    "try": "check", "test": "check", "validate": "check", "verify": "check",
    "completions": "completion",
}  # fmt: skip
_NEVER = ("stop",)  # a typing error must not lead to the end of the daemon
_CLOSE = 0.6
_TIMEOUT = 2.0  # seconds


def synonyms() -> dict[str, str]:
    """Return the words of other programs for the verbs of the core, and for those of extensions."""
    from tsctl.extension import extensions

    return SYNONYMS | {word: verb for each in extensions() for word, verb in each.synonyms.items()}


def suggest_verb(word: str, verbs: Iterable[str]) -> str:
    """Return the verb that `word` probably means; empty if there is none."""
    known = [verb for verb in verbs if verb not in _NEVER]
    meant = synonyms().get(word.lower())
    if meant in known:
        return meant or ""
    return next(iter(get_close_matches(word.lower(), known, n=1, cutoff=_CLOSE)), "")


def suggest_model(typed: str, socket: Path | None) -> str:
    """Return a hint that names the registered model, or the versions, most like the typed one.

    Empty if nothing is similar, or if the daemon does not answer.
    """
    try:
        models = DaemonClient(socket, timeout=_TIMEOUT).json("GET", "/tsctl/status")["models"]
    except CliError:
        return ""
    return similar_model(typed, models)


def similar_model(typed: str, models: Iterable[dict[str, Any]]) -> str:
    """Return the hint about a model that is not registered, from the models of a status document."""
    name, slash, _ = typed.partition("/")
    versions: dict[str, list[str]] = {}
    for model in models:
        versions.setdefault(model["name"], []).append(model["version"])
    if name in versions:
        return f"registered versions of `{name}`: {', '.join(versions[name])}" if slash else ""
    close = get_close_matches(name, versions, n=1, cutoff=_CLOSE) or [
        known for known in versions if known.lower() == name.lower()
    ]
    if close:
        return f"did you mean `{close[0]}`?"
    return "`tsctl ls` shows the registered models" if versions else "no model is registered"
