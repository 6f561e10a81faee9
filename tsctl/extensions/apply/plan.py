"""The steps from one state of the models to another.

    1  register new versions, and replace those that must be loaded anew    the daemon serves the old one meanwhile
    2  change settings, and scale
    3  choose the default versions, or set and remove routes
    4  unregister the versions that are left over                           those that answer never before step 3

So a version that answers requests goes only when another answers them, and what fails most often, a load, comes first.
"""

from collections.abc import Container, Mapping
from typing import Any

from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.extensions.apply.state import FAILED, ModelSpec, State, VersionSpec
from tsctl.extensions.apply.steps import (
    ChangeSettings,
    PlannedStep,
    Register,
    ScaleWorkers,
    SetDefault,
    SetRoute,
    Unregister,
    Unroute,
)

_CHANGEABLE = {row.yaml for row in MODEL_SETTINGS if row.changes}


_ORDER = (Register, ChangeSettings, ScaleWorkers, Unroute, SetDefault, SetRoute, Unregister)


def plan(now: State, wanted: State) -> list[PlannedStep]:
    """Return the steps from the state of now to the wanted one; none if nothing differs.

    Models that `wanted` does not name are unregistered.
    """
    steps: list[PlannedStep] = []
    for name, model in wanted.items():
        steps += _model(name, now.get(name), model)
    for name, model in now.items():
        if name not in wanted:
            # The default version goes last: the daemon keeps it while there are others.
            versions = sorted(model.versions, key=lambda version: version == model.default)
            if model.route:
                steps.append(Unroute(name, model.default, model.route))
            steps += [Unregister(name, version, model.versions[version]) for version in versions]
    return sorted(steps, key=lambda step: _ORDER.index(type(step)))  # stable: within a kind the order stays


def only(state: State, names: Container[str]) -> State:
    return {name: model for name, model in state.items() if name in names}


def _model(name: str, now: ModelSpec | None, wanted: ModelSpec) -> list[PlannedStep]:
    steps: list[PlannedStep] = []
    registered = {} if now is None else now.versions
    # The first version of a model becomes its default: the one that is wanted comes first.
    for version in sorted(wanted.versions, key=lambda version: version != wanted.default):
        steps += _version(name, version, registered.get(version), wanted.versions[version])
    default = wanted.default if now is None else now.default
    route = {} if now is None else now.route
    if wanted.route != route and wanted.route:
        steps.append(SetRoute(name, wanted.default, wanted.route, route))
    elif default != wanted.default:
        steps.append(SetDefault(name, wanted.default, default))
    elif wanted.route != route:
        steps.append(Unroute(name, wanted.default, route))
    left = [version for version in registered if version not in wanted.versions]
    return steps + [Unregister(name, version, registered[version]) for version in left]


def _version(name: str, version: str, now: VersionSpec | None, wanted: VersionSpec) -> list[PlannedStep]:
    if now is None:
        return [Register(name, version, wanted)]
    changed = {key: value for key, value in wanted.settings.items() if now.settings.get(key) != value}
    if _is_loaded_anew(now, wanted, changed):
        return [Register(name, version, wanted, now)]
    steps: list[PlannedStep] = []
    if changed:
        before = {key: now.settings.get(key) for key in changed}
        steps.append(ChangeSettings(name, version, changed, before))
    if wanted.workers is not None and now.workers is not None and wanted.workers != now.workers:
        steps.append(ScaleWorkers(name, version, wanted.workers, now.workers))
    return steps


def _is_loaded_anew(now: VersionSpec, wanted: VersionSpec, changed: Mapping[str, Any]) -> bool:
    """Return whether the version needs new workers: another source, or settings that no serving version takes.

    A setting that is no longer asked for is among these: only a registration reads the archive's own value again.
    """
    pinned = wanted.sha256 is not None and now.sha256 == wanted.sha256
    return (
        (now.url, now.handler) != (wanted.url, wanted.handler)
        or (wanted.sha256 is not None and not pinned)
        or (bool(now.outdated) and not (pinned and now.outdated != FAILED))
        or not now.settings.keys() <= wanted.settings.keys()
        or not changed.keys() <= _CHANGEABLE
    )
