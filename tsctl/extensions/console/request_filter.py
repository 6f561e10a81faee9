"""The few requests of the page that reach the daemon's control socket; all others are refused.

    page                                daemon
    GET   /api/status                   GET   /tsctl/status
    GET   /api/events?…                 GET   /tsctl/events?…
    GET   /api/metrics                  GET   /metrics
    GET   /api/WORD?…                   GET   /tsctl/WORD?…      documents of extensions (tsctl/extension.py)
    GET   /api/models/MODEL[/VERSION]   GET   /models/MODEL[/VERSION]
    PATCH /api/models/MODEL[/VERSION]?… PATCH /models/MODEL[/VERSION]?…  settings that change while a model serves
    POST  /api/predictions/MODEL[/VERSION]    POST  /predictions/MODEL[/VERSION]
    GET   /api/tensors/MODEL[/VERSION]  GET   /v2/models/MODEL[/versions/VERSION]
    POST  /api/tensors/MODEL[/VERSION]  POST  /v2/models/MODEL[/versions/VERSION]/infer

Beside these, `/api/settings`, `/api/tuned` and `/api/logs/MODEL/VERSION` are answered from files of this machine.
Nothing here registers, unregisters, scales or upgrades, and no parameter is a path of an archive.
"""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tsctl.daemon.model_settings.kinds import Boolean, Choice
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.extension import extensions

_SECONDS = {"ms": 0.001, "s": 1.0}


def settings_document() -> list[dict[str, Any]]:
    """Return for each changeable setting its names at the borders, its kind and a sentence for people.

    `factor` converts a number of a describe document to the unit of the option.
    """
    return [
        {
            "yaml": row.yaml,
            "rest": row.rest,
            "flag": row.flag,
            "label": row.label or row.yaml,
            "unit": row.kind.unit,
            "help": row.help,
            "changes": row.changes,
            "choices": list(row.kind.words) if isinstance(row.kind, Choice) else None,
            "boolean": isinstance(row.kind, Boolean),
            "factor": _SECONDS.get(row.written.unit, 1.0) / _SECONDS.get(row.kind.unit, 1.0),
        }
        for row in MODEL_SETTINGS
        if row.changes and row.flag
    ]


CHANGEABLE = frozenset(row.rest for row in MODEL_SETTINGS if row.changes)
_EVENTS = frozenset({"model", "after", "since", "limit", "level"})
_DOCUMENTS = {"status": "/tsctl/status", "metrics": "/metrics"}
# Headers of the page's requests that the daemon sees, and of the daemon's responses that the page sees.
ASKING = ("content-type", "accept", "x-tsctl-timing")
ANSWERING = ("server-timing", "x-request-id", "retry-after")


class Allowed(NamedTuple):
    method: str
    target: str


def allowed(method: str, target: str) -> Allowed | None:
    """Return the daemon's request for a request of the page, None if the page may not ask this.

    Args:
        target: path and query as received, below `/api/`.
    """
    try:
        parts = urlsplit(target)
        path = [unquote(each, errors="strict") for each in parts.path.split("/")[1:]]
        query = parse_qsl(parts.query, keep_blank_values=True, errors="strict")
    except ValueError:
        return None
    match method, path:
        case "GET", ["api", "events"] if _only(query, _EVENTS):
            return Allowed("GET", _with("/tsctl/events", query))
        case "GET", ["api", ("status" | "metrics") as word] if not query:
            return Allowed("GET", _DOCUMENTS[word])
        case "GET", ["api", word] if (names := _documents().get(word)) is not None and _only(query, names):
            return Allowed("GET", _with(f"/tsctl/{word}", query))
        case "GET", ["api", "models", *named] if _model(named) and not query:
            return Allowed("GET", _joined("/models", named))
        case "PATCH", ["api", "models", *named] if _model(named) and query and _only(query, CHANGEABLE):
            return Allowed("PATCH", _with(_joined("/models", named), query))
        case "POST", ["api", "predictions", *named] if _model(named) and not query:
            return Allowed("POST", _joined("/predictions", named))
        case (("GET" | "POST"), ["api", "tensors", *named]) if _model(named) and not query:
            version = ["versions", *named[1:]] if named[1:] else []
            asked = ["infer"] if method == "POST" else []
            return Allowed(method, _joined("/v2/models", [named[0], *version, *asked]))
    return None


def logged_version(target: str) -> tuple[str, str] | None:
    """Return the name and version of `/api/logs/MODEL/VERSION`, which the page reads without the daemon; else None."""
    try:
        path = [unquote(each, errors="strict") for each in urlsplit(target).path.split("/")[1:]]
    except ValueError:
        return None
    match path:
        case ["api", "logs", name, version] if _model([name, version]):
            return name, version
    return None


def _documents() -> dict[str, frozenset[str]]:
    """Return the documents of extensions that the page may ask for, each with its parameters."""
    return {word: names for each in extensions() for word, names in each.documents.items()}


def _model(named: list[str]) -> bool:
    """Return whether these are a model's name, and perhaps its version, which cannot lead to another route."""
    return len(named) in (1, 2) and all(
        each not in ("", ".", "..") and "/" not in each and each.isprintable() for each in named
    )


def _only(query: list[tuple[str, str]], names: frozenset[str]) -> bool:
    return all(name in names for name, _ in query)


def _joined(root: str, named: list[str]) -> str:
    return "/".join([root, *(quote(each, safe="") for each in named)])


def _with(path: str, query: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
