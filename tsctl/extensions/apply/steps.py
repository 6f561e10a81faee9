"""The steps of a plan, each one change of a version: its requests to the daemon, and its lines for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tsctl.client import DaemonClient, model_path
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.extensions.apply.state import VersionSpec
from tsctl.progress import warn, work
from tsctl.setting_text import NO_NAMES, setting_name, setting_text, setting_unit

_ROWS = {row.yaml: row for row in MODEL_SETTINGS if row.yaml}


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


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One change of a version of a model; `after` is what is to be, `before` what is."""

    model: str
    version: str

    def execute(self, client: DaemonClient) -> None:
        """Let the daemon make the change; raises CliError."""
        raise NotImplementedError

    def texts(self) -> StepTexts:
        raise NotImplementedError

    @property
    def _path(self) -> str:
        return f"/models/{model_path(f'{self.model}/{self.version}')}"

    @property
    def _route_path(self) -> str:
        return f"/models/{model_path(self.model)}/route"

    def _texts(self, sign: str, change: str, details: str, done: str) -> StepTexts:
        return StepTexts(sign, self.model, self.version, change, details, done)

    def __str__(self) -> str:
        return f"`{self.model}` {self.version}"

    def _scale(self, client: DaemonClient, workers: tuple[int, int]) -> None:
        work(
            client,
            "PUT",
            self._path,
            subject=f"{self.model} {self.version}",
            hint="`tsctl apply` again does the rest",
            min_worker=workers[0],
            max_worker=workers[1],
            synchronous="true",
        )


@dataclass(frozen=True, slots=True)
class Register(PlannedStep):
    """With a `before`, replace the registered version."""

    after: VersionSpec
    before: VersionSpec | None = None

    def execute(self, client: DaemonClient) -> None:
        spec, replaces = self.after, self.before
        workers = spec.workers or (replaces.workers if replaces is not None else None)
        document = work(
            client,
            "POST",
            "/models",
            subject=f"{self.model} {self.version}",
            hint="`tsctl apply` again does the rest",
            url=spec.url,
            model_name=self.model,
            model_version=self.version,
            sha256=spec.sha256,
            handler=spec.handler,
            replace=None if replaces is None else "true",
            reset=None if replaces is None else "true",
            synchronous="true",
            initial_workers=None if workers is None else workers[0],
            fallback_workers=1,
            fallback_batch_size=spec.fallback_batch_size or None,
            **_parameters(spec.settings),
        )
        warn(document)
        if workers is not None and workers[1] > workers[0]:
            self._scale(client, workers)

    def texts(self) -> StepTexts:
        url = self.after.url
        if self.before is None:
            return self._texts("+", "register", _new(self.after), f"Registered {self} from {url}")
        return self._texts("~", "replace", _replaced(self.before, self.after), f"Replaced {self} by {url}")


@dataclass(frozen=True, slots=True)
class ChangeSettings(PlannedStep):
    """While the version serves: of the settings those that change; before, those that were asked for earlier."""

    after: Mapping[str, Any]
    before: Mapping[str, Any]

    def execute(self, client: DaemonClient) -> None:
        client.json("PATCH", self._path, **_parameters(self.after))

    def texts(self) -> StepTexts:
        details = _settings(self.before, self.after)
        return self._texts("~", "set", details, f"Set {self}: {details}")


@dataclass(frozen=True, slots=True)
class ScaleWorkers(PlannedStep):
    """The least and the largest number of workers."""

    after: tuple[int, int]
    before: tuple[int, int]

    def execute(self, client: DaemonClient) -> None:
        self._scale(client, self.after)

    def texts(self) -> StepTexts:
        details = _scaled(self.before, self.after)
        return self._texts("~", "scale", details, f"Scaled {self}: {details}")


@dataclass(frozen=True, slots=True)
class Unroute(PlannedStep):
    """The version, which is the default one, answers all requests without a version."""

    before: Mapping[str, Any]

    def execute(self, client: DaemonClient) -> None:
        client.json("DELETE", self._route_path)

    def texts(self) -> StepTexts:
        done = f"`{self.model}` has no route: version {self.version} answers"
        return self._texts("~", "route", f"all requests, instead of {_shares(self.before, ' ')}", done)


@dataclass(frozen=True, slots=True)
class SetDefault(PlannedStep):
    """The version answers instead of another one; a route goes, too."""

    before: str

    def execute(self, client: DaemonClient) -> None:
        client.json("PUT", f"{self._path}/set-default")

    def texts(self) -> StepTexts:
        done = f"The default version of `{self.model}` is {self.version}"
        return self._texts("~", "default", f"instead of {self.before}", done)


@dataclass(frozen=True, slots=True)
class SetRoute(PlannedStep):
    """The version with the largest weight becomes the default."""

    after: Mapping[str, Any]
    before: Mapping[str, Any]

    def execute(self, client: DaemonClient) -> None:
        rest = {name: str(value).lower() for name, value in self._rest.items()}
        client.json("PUT", self._route_path, weights=_shares(self.after, ","), **rest)

    def texts(self) -> StepTexts:
        shares, details = _shares(self.after, " "), ", ".join(f"{name} {value}" for name, value in self._rest.items())
        done = f"Requests for `{self.model}` are routed: {shares}"
        return StepTexts("~", self.model, shares, "route", details, done)

    @property
    def _rest(self) -> dict[str, Any]:
        return {name: value for name, value in self.after.items() if name != "weights"}


@dataclass(frozen=True, slots=True)
class Unregister(PlannedStep):
    """Running requests finish."""

    before: VersionSpec

    def execute(self, client: DaemonClient) -> None:
        client.json("DELETE", self._path)

    def texts(self) -> StepTexts:
        return self._texts("-", "unregister", self.before.url, f"Unregistered {self}")


def _parameters(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a request: settings in the units of model-config.yaml become those of REST."""
    found = {}
    for key, value in settings.items():
        row = _ROWS[key]
        shown = row.kind.show(row.written.read(value))
        text = (",".join(map(str, shown)) or NO_NAMES) if isinstance(shown, list) else shown
        found[row.rest] = str(text).lower() if isinstance(text, bool) else str(text)
    return found


def _shares(route: Mapping[str, Any], between: str) -> str:
    return between.join(f"{version}={weight:g}" for version, weight in route["weights"].items())


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
