"""Write a state as a file of `tsctl apply`."""

from pathlib import Path
from typing import Any

from tsctl.apply.route import written_route
from tsctl.apply.state import ModelSpec, State, VersionSpec

_HEAD = "# The models of a daemon, for `tsctl apply`.\n"


def export(models: State, store: Path | None) -> str:
    """Return a file's text that asks for the state.

    Args:
        store: the daemon's model store; archives in it are named without it.
    """
    import yaml

    document = {"models": {name: _model(model, store) for name, model in models.items()}}
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)


def _model(model: ModelSpec, store: Path | None) -> dict[str, Any]:
    if len(model.versions) == 1:
        ((version, spec),) = model.versions.items()
        return _version(spec, store, version)
    answering: dict[str, Any] = {"default": model.default}
    if model.route:
        weights = {version: _whole(weight) for version, weight in model.route["weights"].items()}
        answering = {"route": written_route({**model.route, "weights": weights})}
    return answering | {"versions": {version: _version(spec, store) for version, spec in model.versions.items()}}


def _version(spec: VersionSpec, store: Path | None, version: str = "") -> dict[str, Any]:
    document: dict[str, Any] = {"source": _named(spec.url, store)}
    if version:
        document["version"] = version
    if spec.sha256 is not None:
        document["sha256"] = spec.sha256
    if spec.handler is not None:
        document["handler"] = spec.handler
    if spec.workers is not None:
        least, most = spec.workers
        document["workers"] = least if most == least else {"min": least, "max": most}
    if spec.settings:
        document["settings"] = {key: _whole(value) for key, value in spec.settings.items()}
    return document


def _whole(value: Any) -> Any:
    """Return a value without needless decimals: 50.0 is written as 50."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _named(url: str, store: Path | None) -> str:
    """Return the name of an archive in the model store, from which a file may be applied elsewhere; else the url."""
    if store is None or not url.startswith(f"{store}/") or ":" in url:
        return url
    return url.removeprefix(f"{store}/")
