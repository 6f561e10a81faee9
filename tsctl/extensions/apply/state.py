"""The state of the models: which versions are registered, from where, and with which settings that were asked for.

Settings have their names and units of model-config.yaml.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsctl.errors import CliError, ServedByProgram

FAILED = "the registered one has failed"
REWRITTEN = "its archive has changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSpec:
    """One version of a model.

    Attributes:
        url: a name in the model store, an absolute path, or a URL.
        handler: the handler that is used instead of the archive's; None for the archive's.
        sha256: of the archive; None if unknown, or if any will do.
        settings: those that were asked for.
        workers: the least and the largest number; None if any will do.
        fallback_batch_size: of built-in handlers, if nothing else names one; 0 for none.
        outdated: why the version must be loaded again although nothing else has changed; empty if it need not.
    """

    url: str
    handler: str | None = None
    sha256: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    workers: tuple[int, int] | None = None
    fallback_batch_size: int = 0
    outdated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """All versions of a model, and those that answer requests without a version.

    Attributes:
        default: the version that answers; with a route, the one with the largest weight.
        route: the parameters of the model's route: `weights`, `sticky`, `shadow`, `sample`, `allow_effects`; empty for
            none.
    """

    versions: Mapping[str, VersionSpec]
    default: str
    route: Mapping[str, Any] = field(default_factory=dict)


State = Mapping[str, ModelSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonState:
    """The state of a daemon.

    Attributes:
        models: those that a restart brings back.
        ephemeral: names of models that a program serves as long as it runs, such as `tsctl serve`.
        earlier: each model before its latest change.
        changed: when that was, in seconds since the epoch.
    """

    models: State
    ephemeral: frozenset[str]
    earlier: State
    changed: Mapping[str, float]

    def check_lasting(self, name: str) -> None:
        """Check that a model is not served by a program, which alone decides about it.

        Raises:
            ServedByProgram: the model is.
        """
        if name in self.ephemeral:
            raise ServedByProgram(name)


def read_state(document: Mapping[str, Any], store: Path | None) -> DaemonState:
    """Read the daemon's document of its registrations.

    Args:
        store: the daemon's model store, of which names are made absolute paths.

    Raises:
        CliError: the daemon is still restoring the models of its last run.
    """
    restoring = sorted({each["name"] for each in document["versions"] if each["state"] == "restoring"})
    if restoring:
        raise CliError(f"the daemon is still restoring `{restoring[0]}`", "try again when `tsctl ls` shows the model")
    lasting = [each for each in document["versions"] if not each["ephemeral"]]
    return DaemonState(
        models=_models(lasting, store, document["routes"]),
        ephemeral=frozenset(each["name"] for each in document["versions"] if each["ephemeral"]),
        earlier={
            name: model
            for key, each in document["earlier"].items()
            for name, model in _models(each["versions"], store, {key: each.get("route") or {}}).items()
        },
        changed={name: each["time"] for name, each in document["earlier"].items()},
    )


def _models(
    versions: list[dict[str, Any]], store: Path | None, routes: Mapping[str, Mapping[str, Any]]
) -> dict[str, ModelSpec]:
    found: dict[str, dict[str, VersionSpec]] = {}
    defaults: dict[str, str] = {}
    for each in versions:
        found.setdefault(each["name"], {})[each["version"]] = _version(each, store)
        if each["default"]:
            defaults[each["name"]] = each["version"]
    return {
        name: ModelSpec(versions=members, default=defaults.get(name) or next(iter(members)), route=routes.get(name, {}))
        for name, members in found.items()
    }


def _version(document: Mapping[str, Any], store: Path | None) -> VersionSpec:
    workers = document["workers"]
    outdated = ""
    if document["state"] == "failed":
        outdated = FAILED
    elif document["rewritten"]:
        outdated = REWRITTEN
    return VersionSpec(
        url=absolute(document["url"], store),
        handler=document["handler"],
        sha256=document["sha256"],
        settings=document["settings"],
        workers=None if workers is None else (workers["min"], workers["max"]),
        fallback_batch_size=document["fallbackBatchSize"],
        outdated=outdated,
    )


def absolute(url: str, store: Path | None) -> str:
    """Return a name in the model store as an absolute path; a path or a URL as it is."""
    return url if store is None or "://" in url or url.startswith("/") else str(store / url)
