"""The steps between two states lead to the wanted one, change nothing twice, and never drop a version that serves."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.extensions.apply.plan import plan
from tsctl.extensions.apply.state import FAILED, REWRITTEN, ModelSpec, State, VersionSpec
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

PIN, OTHER = "1" * 64, "2" * 64
SERVED = VersionSpec(url="/s/m.mar", sha256=PIN, settings={"batchSize": 4}, workers=(1, 1))


def one(spec: VersionSpec, version: str = "1.0") -> ModelSpec:
    return ModelSpec(versions={version: spec}, default=version)


def steps_of(now: VersionSpec, wanted: VersionSpec) -> list[PlannedStep]:
    return plan({"m": one(now)}, {"m": one(wanted)})


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(SERVED, id="the same"),
        pytest.param(replace(SERVED, sha256=None), id="any archive"),
        pytest.param(replace(SERVED, workers=None), id="any number of workers"),
        pytest.param(replace(SERVED, fallback_batch_size=8), id="another fallback"),
    ],
)
def test_what_is_so_already_takes_no_step(wanted: VersionSpec) -> None:
    assert steps_of(SERVED, wanted) == []


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(replace(SERVED, url="/s/other.mar"), id="another source"),
        pytest.param(replace(SERVED, handler="image_classifier"), id="another handler"),
        pytest.param(replace(SERVED, sha256=OTHER), id="another SHA-256"),
        pytest.param(replace(SERVED, settings={}), id="a setting that is asked for no longer"),
        pytest.param(replace(SERVED, settings={"batchSize": 4, "retry": True}), id="a setting that workers start with"),
    ],
)
def test_a_version_is_loaded_anew_where_serving_workers_cannot_change(wanted: VersionSpec) -> None:
    assert steps_of(SERVED, wanted) == [Register("m", "1.0", wanted, SERVED)]


def test_an_archive_that_was_rewritten_is_loaded_unless_the_served_one_is_pinned() -> None:
    now = replace(SERVED, outdated=REWRITTEN)

    failed = replace(SERVED, outdated=FAILED)

    assert steps_of(failed, SERVED) == [Register("m", "1.0", SERVED, failed)]
    assert steps_of(now, SERVED) == []  # `SERVED` pins what is served
    assert steps_of(now, replace(SERVED, sha256=None)) == [Register("m", "1.0", replace(SERVED, sha256=None), now)]


SPECS = st.builds(
    VersionSpec,
    url=st.sampled_from(["/s/x.mar", "/s/y.mar"]),
    sha256=st.sampled_from([None, PIN, OTHER]),
    handler=st.sampled_from([None, "h"]),
    settings=st.dictionaries(st.sampled_from(["batchSize", "retry"]), st.integers(1, 2)),
    workers=st.one_of(st.none(), st.tuples(st.integers(0, 1), st.integers(1, 2))),
)


@st.composite
def models(draw: st.DrawFn) -> ModelSpec:
    versions = draw(st.dictionaries(st.sampled_from(["1.0", "2.0", "3.0"]), SPECS, min_size=1))
    default, route = draw(st.sampled_from(sorted(versions))), {}
    if draw(st.booleans()):
        weights = {version: 10.0 if version == default else 1.0 for version in versions if draw(st.booleans())}
        route = {"weights": {**weights, default: 10.0}}
    return ModelSpec(versions=versions, default=default, route=route)


STATES = st.dictionaries(st.sampled_from(["a", "b", "c"]), models())


class Served:
    """The daemon's rules: a first version is the default, a default version stays while there are others, a routed one
    stays, and choosing a default removes the route."""

    def __init__(self, state: State) -> None:
        self.models: dict[str, dict[str, VersionSpec]] = {name: dict(each.versions) for name, each in state.items()}
        self.defaults = {name: each.default for name, each in state.items()}
        self.routes = {name: each.route for name, each in state.items()}

    @property
    def state(self) -> dict[str, ModelSpec]:
        return {
            name: ModelSpec(versions=each, default=self.defaults[name], route=self.routes.get(name, {}))
            for name, each in self.models.items()
        }

    def do(self, step: PlannedStep) -> None:
        versions = self.models.setdefault(step.model, {})
        version = step.version
        match step:
            case Register(after=after, before=before):
                assert versions.get(version) == before
                self.defaults.setdefault(step.model, version)
                workers = after.workers or (before.workers if before is not None else None)
                versions[version] = replace(after, workers=workers or (1, 1), sha256=after.sha256 or PIN)
            case ChangeSettings():
                merged: Mapping[str, Any] = {**versions[version].settings, **step.after}
                versions[version] = replace(versions[version], settings=merged)
            case ScaleWorkers():
                versions[version] = replace(versions[version], workers=step.after)
            case SetDefault():
                assert version in versions
                self.defaults[step.model], self.routes[step.model] = version, {}
            case SetRoute(after=route):
                assert route["weights"].keys() <= versions.keys()
                self.routes[step.model] = route
                self.defaults[step.model] = max(route["weights"], key=lambda each: float(route["weights"][each]))
            case Unroute():
                self.routes[step.model] = {}
            case Unregister():
                assert version not in self.routes.get(step.model, {}).get("weights", ())
                assert version != self.defaults[step.model] or len(versions) == 1
                del versions[version]
                if not versions:
                    del self.models[step.model], self.defaults[step.model]


@pytest.mark.slow
@given(now=STATES, wanted=STATES)
def test_steps_lead_to_the_wanted_state_and_no_model_is_ever_without_a_version(now: State, wanted: State) -> None:
    served = Served(now)
    for step in plan(now, wanted):
        served.do(step)
        assert {name for name in now if name in wanted} <= served.models.keys()
        assert all(default in served.models[name] for name, default in served.defaults.items())

    assert served.models.keys() == wanted.keys()
    answering = [{name: (each.default, each.route) for name, each in state.items()} for state in (served.state, wanted)]
    assert answering[0] == answering[1]
    assert plan(served.state, wanted) == plan(now, now) == []
