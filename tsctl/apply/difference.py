"""The steps of a plan as lines for people, and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.apply.plan import (
    ChangeSettings,
    ChooseDefault,
    Register,
    RemoveRoute,
    ScaleWorkers,
    SetRoute,
    Step,
    Unregister,
)
from tsctl.apply.state import VersionSpec
from tsctl.setting_text import setting_name, setting_text, setting_unit

COLUMNS = ("", "MODEL", "VERSION", "CHANGE", "DETAILS")
_STYLES = {"+": "green", "~": "yellow", "-": "red"}


def row_of(step: Step) -> tuple[str, str, str, str, str]:
    """Return a sign (`+` new, `~` changed, `-` gone), model, version, the change in a word, and its details."""
    match step:
        case Register(replaces=None):
            return "+", step.model, step.version, "register", _new(step.spec)
        case Register(replaces=VersionSpec() as before):
            return "~", step.model, step.version, "replace", _replaced(before, step.spec)
        case ChangeSettings():
            return "~", step.model, step.version, "set", _settings(step.before, step.settings)
        case ScaleWorkers():
            return "~", step.model, step.version, "scale", _scaled(step.before, step.workers)
        case ChooseDefault():
            return "~", step.model, step.version, "default", f"instead of {step.before}"
        case SetRoute():
            return "~", step.model, _shares(step.route), "route", _rest(step.route)
        case RemoveRoute():
            return "~", step.model, step.version, "route", f"all requests, instead of {_shares(step.before)}"
        case Unregister():
            return "-", step.model, step.version, "unregister", step.spec.url
    raise AssertionError(step)


def show(steps: Sequence[Step]) -> None:
    """Print the steps as a table."""
    from rich.text import Text

    from tsctl import render

    rows = [row_of(step) for step in steps]
    signed = [(Text(sign, style=_STYLES[sign]), *rest) for sign, *rest in rows]
    render.table(COLUMNS, signed)


def documents(steps: Sequence[Step]) -> list[dict[str, str]]:
    """Return the steps for programs."""
    names = ("model", "version", "change", "details")
    return [dict(zip(names, row_of(step)[1:], strict=True)) for step in steps]


def done_line(step: Step) -> str:
    """Return the line after a step that is done."""
    of = f"`{step.model}` {step.version}"
    match step:
        case Register(replaces=None):
            return f"Registered {of} from {step.spec.url}"
        case Register():
            return f"Replaced {of} by {step.spec.url}"
        case ChangeSettings():
            return f"Set {of}: {_settings(step.before, step.settings)}"
        case ScaleWorkers():
            return f"Scaled {of}: {_scaled(step.before, step.workers)}"
        case ChooseDefault():
            return f"The default version of `{step.model}` is {step.version}"
        case SetRoute():
            return f"Requests for `{step.model}` are routed: {_shares(step.route)}"
        case RemoveRoute():
            return f"`{step.model}` has no route: version {step.version} answers"
        case Unregister():
            return f"Unregistered {of}"
    raise AssertionError(step)


def _shares(route: Mapping[str, Any]) -> str:
    return " ".join(f"{version}={weight:g}" for version, weight in route["weights"].items())


def _rest(route: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in route.items() if name != "weights")


def _new(spec: VersionSpec) -> str:
    parts = [spec.url]
    if spec.handler is not None:
        parts.append(f"handler {spec.handler}")
    if spec.workers is not None:
        parts.append(_workers(spec.workers))
    parts += [f"{setting_name(key)} {_value(key, value)}" for key, value in spec.settings.items()]
    return ", ".join(parts)


def _replaced(before: VersionSpec, after: VersionSpec) -> str:
    parts = []
    if before.url != after.url:
        parts.append(f"{before.url} → {after.url}")
    elif after.sha256 is not None and before.sha256 != after.sha256:
        parts.append(f"SHA-256 {(before.sha256 or 'unknown')[:12]}… → {after.sha256[:12]}…")
    elif before.outdated:
        parts.append(before.outdated)
    if before.handler != after.handler:
        parts.append(f"handler {before.handler or 'of the archive'} → {after.handler or 'of the archive'}")
    if before.settings != after.settings:
        parts.append(_settings(before.settings, after.settings))
    if after.workers is not None and before.workers is not None and before.workers != after.workers:
        parts.append(_scaled(before.workers, after.workers))
    return ", ".join(parts)


def _settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return ", ".join(
        f"{setting_name(key)} {_value(key, before.get(key))} → {_value(key, after.get(key))}" for key in keys
    )


def _value(key: str, value: Any) -> str:
    return "not set" if value is None else setting_text(key, value) + setting_unit(key)


def _scaled(before: tuple[int, int], after: tuple[int, int]) -> str:
    return f"{_workers(before)} → {_workers(after)}"


def _workers(workers: tuple[int, int]) -> str:
    least, most = workers
    return f"{least} to {most} workers" if most > least else f"{least} worker{'' if least == 1 else 's'}"
