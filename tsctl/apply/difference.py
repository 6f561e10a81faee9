"""The steps of a plan as lines for people, and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from tsctl.apply.plan import (
    ChangeSettings,
    PlannedStep,
    Register,
    ScaleWorkers,
    SetDefault,
    SetRoute,
    Unregister,
    Unroute,
)
from tsctl.apply.state import VersionSpec
from tsctl.setting_text import setting_name, setting_text, setting_unit

COLUMNS = ("", "MODEL", "VERSION", "CHANGE", "DETAILS")
_STYLES = {"+": "green", "~": "yellow", "-": "red"}


class StepTexts(NamedTuple):
    """The texts about a step.

    Attributes:
        sign: `+` new, `~` changed, `-` gone.
        change: a word.
        done: the line after a step that is done.
    """

    sign: str
    model: str
    version: str
    change: str
    details: str
    done: str


def texts_of(step: PlannedStep) -> StepTexts:
    model, version = step.model, step.version
    of = f"`{model}` {version}"
    match step:
        case Register(after=after, before=before):
            if before is None:
                return StepTexts("+", model, version, "register", _new(after), f"Registered {of} from {after.url}")
            details = _replaced(before, after)
            return StepTexts("~", model, version, "replace", details, f"Replaced {of} by {after.url}")
        case ChangeSettings():
            details = _settings(step.before, step.after)
            return StepTexts("~", model, version, "set", details, f"Set {of}: {details}")
        case ScaleWorkers():
            details = _scaled(step.before, step.after)
            return StepTexts("~", model, version, "scale", details, f"Scaled {of}: {details}")
        case SetDefault():
            done = f"The default version of `{model}` is {version}"
            return StepTexts("~", model, version, "default", f"instead of {step.before}", done)
        case SetRoute(after=route):
            shares = _shares(route)
            return StepTexts("~", model, shares, "route", _rest(route), f"Requests for `{model}` are routed: {shares}")
        case Unroute(before=route):
            details = f"all requests, instead of {_shares(route)}"
            done = f"`{model}` has no route: version {version} answers"
            return StepTexts("~", model, version, "route", details, done)
        case Unregister():
            return StepTexts("-", model, version, "unregister", step.before.url, f"Unregistered {of}")
        case _:
            assert_never(step)


def show(steps: Sequence[PlannedStep]) -> None:
    from rich.text import Text

    from tsctl import render

    rows = [texts_of(step)[:-1] for step in steps]
    render.table(COLUMNS, [(Text(sign, style=_STYLES[sign]), *rest) for sign, *rest in rows])


def documents(steps: Sequence[PlannedStep]) -> list[dict[str, str]]:
    names = ("model", "version", "change", "details")
    return [dict(zip(names, texts_of(step)[1:-1], strict=True)) for step in steps]


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
        known = f"{before.sha256[:12]}…" if before.sha256 else "unknown"
        parts.append(f"SHA-256 {known} → {after.sha256[:12]}…")
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
