"""`tsctl export`: a state as a file of `tsctl apply`."""

from pathlib import Path
from typing import Any

import click

from tsctl.completion import complete_model
from tsctl.errors import CliError
from tsctl.extensions.apply.route import written_route
from tsctl.extensions.apply.state import ModelSpec, State, VersionSpec
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

_HEAD = "# The models of a daemon, for `tsctl apply`.\n"


@click.command(cls=Verb)
@click.argument("models", nargs=-1, shell_complete=complete_model)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.pass_obj
def command(socket: Path | None, models: tuple[str, ...], output: Path | None) -> None:
    """Write the registered models as a file for `tsctl apply`: all, or the named MODELS.

    The file holds the sources, with their SHA-256, the numbers of workers, and the settings that were
    asked for; those of the archives and of the daemon stay where they are. Models that `tsctl serve`
    serves are left out. The file goes to stdout.
    """
    from tsctl.extensions.apply.run import daemon_at

    daemon = daemon_at(socket)
    state = daemon.state().models
    for name in models:
        if name not in state:
            registered = ", ".join(f"`{each}`" for each in state) or "none"
            raise CliError(f"no model `{name}` is registered", f"registered: {registered}")
    text = export({name: state[name] for name in models or state}, daemon.store)
    if output is None:
        echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise CliError(f"cannot write `{output}`: {error.strerror}") from None


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
