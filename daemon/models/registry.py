"""The registry: the registered models by name, and their versions, one of which is the default; and all that live.

A service may reserve a model: then it alone changes which versions answer, and all that it changes until it lets go is
one change (persistence/snapshot_file.py).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tsctl.daemon.core.errors import (
    BeingReplaced,
    Conflict,
    DaemonError,
    DefaultVersionKept,
    ModelNotFound,
    NoReadyWorker,
    Stopping,
    VersionNotFound,
)
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.routing.routes import Routes
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.compiling import mypyc_attr


class Reservation(NamedTuple):
    """A service's reservation of one model.

    Attributes:
        versions: those that must stay registered.
        refusal: makes the error of a command that would interfere; its text names the remedy.
        release: called with one of the versions that must go all the same, and why; raises NotRemembered.
    """

    versions: tuple[str, ...]
    refusal: Callable[[], DaemonError]
    release: Callable[[ModelVersion, str], Awaitable[None]]


@dataclass(slots=True)
class _Versions:
    default: str
    models: dict[str, ModelVersion] = field(default_factory=dict)


class Registry:
    """Models by name and version; has no clock and starts nothing.

    Some models are known before they are registered: those that a list names, or the last run had registered. They are
    expected while they are unpacked, and those that could not be registered are remembered with the reason.

    Attributes:
        waiters: called when a model is no longer expected, for requests that wait for one.
        forgetting: called when models are gone, with a function from a name to whether it is one.
        reservations: of models, by name.
        routes: the routes of models, whose versions may be gone.
    """

    def __init__(self, routes: Routes | None = None) -> None:
        self.routes = Routes() if routes is None else routes
        self.reservations: dict[str, Reservation] = {}
        self.waiters: list[Callable[[], None]] = []
        self.forgetting: Callable[[Callable[[str], bool]], None] = lambda gone: None
        self._names: dict[str, _Versions] = {}
        self._expected: Counter[str | None] = Counter()  # None: of an archive whose name is not known yet
        self._failed: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Registry {' '.join(f'{model.name}/{model.version}' for model in self)}>"

    def __iter__(self) -> Iterator[ModelVersion]:
        """Yield every version of every model, by name."""
        for name in sorted(self._names):
            yield from self._names[name].models.values()

    def __contains__(self, name: object) -> bool:
        """Return whether a model of this name is registered."""
        return name in self._names

    def find(self, name: str, version: str | None = None) -> ModelVersion:
        """Find a version, or the default one.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            NoReadyWorker: the model could not be registered at the start.
        """
        versions = self._names.get(name)
        if versions is None:
            if name in self._failed:
                raise NoReadyWorker(f'Model "{name}" could not be loaded at the start: {self._failed[name]}')
            raise ModelNotFound(name)
        model = versions.models.get(version or versions.default)
        if model is None:
            raise VersionNotFound(name, str(version))
        return model

    def forget_missing(self) -> None:
        """Forget what there is of models that the start has not brought back."""
        self._forget(lambda name: name not in self._names)

    def _forget(self, gone: Callable[[str], bool]) -> None:
        for name in list(filter(gone, self.routes.by_model)):
            self.routes.put(name, None)
        self.forgetting(gone)

    def expect(self, name: str | None) -> None:
        """Note that a model will be registered, or fail to be; None for one whose name is not known yet."""
        self._expected[name] += 1

    def expects(self, name: str) -> bool:
        """Return whether a model of this name may still be registered at the start."""
        return bool(self._expected[name] or self._expected[None])

    @property
    def expected(self) -> list[str | None]:
        """The names of the models that will be registered, or fail to be; None for those that are not known yet."""
        return [name for name, count in self._expected.items() if count > 0]

    def settle(self, name: str | None, failure: str = "") -> None:
        """Note that an expected model was registered, or failed to be, and why."""
        self._expected[name] -= 1
        if failure and name is not None and name not in self._names:
            self._failed[name] = failure
        for look in tuple(self.waiters):
            look()

    def check_unreserved(self, name: str, version: str = "") -> None:
        """Check that a command may change which versions of a model answer.

        Args:
            version: the command only takes this version away; empty for any other change.

        Raises:
            DaemonError: the model is reserved, and the reservation needs the version.
        """
        found = self.reservations.get(name)
        if found is not None and (not version or version in found.versions):
            raise found.refusal()

    def holds(self, name: str, version: str) -> bool:
        """Return whether this version of the model is registered."""
        return name in self._names and version in self._names[name].models

    def versions(self, name: str) -> list[ModelVersion]:
        """Return all versions of a model, in the order of their registration.

        Raises:
            ModelNotFound: no model has this name.
        """
        if name not in self._names:
            raise ModelNotFound(name)
        return list(self._names[name].models.values())

    def defaults(self) -> list[ModelVersion]:
        """Return the default version of each model, by name."""
        return [versions.models[versions.default] for _, versions in sorted(self._names.items())]

    def is_default(self, model: ModelVersion) -> bool:
        return self._names[model.name].default == model.version

    def add(self, model: ModelVersion) -> ModelVersion | None:
        """Register a version; the first of a model becomes its default.

        Returns:
            The failed version that was replaced, None if there was none.

        Raises:
            Conflict: the version is registered, and has not failed.
            BeingReplaced: a replacement of the version is loading.
        """
        versions = self._names.setdefault(model.name, _Versions(model.version))
        old = versions.models.get(model.version)
        if old is not None and old.being_replaced:
            raise BeingReplaced(old.name, old.version)
        if old is not None and old.state is not ModelState.FAILED:
            raise Conflict(model.name, model.version)
        versions.models[model.version] = model
        self._failed.pop(model.name, None)
        return old

    def replace(self, old: ModelVersion, new: ModelVersion) -> None:
        """Replace a version by another one; a default version stays the default.

        Raises:
            VersionNotFound: the old version is no longer registered.
        """
        versions = self._names.get(old.name)
        if versions is None or versions.models.get(old.version) is not old:
            sentence = f"Model version {old.version} of model {old.name} was unregistered while it was being replaced"
            raise VersionNotFound(old.name, old.version, sentence)
        versions.models[old.version] = new

    def remove(self, name: str, version: str | None = None) -> ModelVersion:
        """Remove a version, or the default one, and return it.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            DefaultVersionKept: the version is the default, and other versions are registered.
            RoutedVersion: the model's route sends requests to the version.
            DaemonError: the version is reserved.
        """
        model = self.find(name, version)
        self.check_unreserved(name, model.version)
        self.routes.check_unused(name, model.version)
        versions = self._names[name]
        if model.version == versions.default and len(versions.models) > 1:
            raise DefaultVersionKept(name)
        self.discard(model)
        return model

    def discard(self, model: ModelVersion) -> None:
        """Remove a version that could not be started, if still registered."""
        versions = self._names.get(model.name)
        if versions is None or versions.models.get(model.version) is not model:
            return
        del versions.models[model.version]
        if not versions.models:
            del self._names[model.name]
            if not self.expects(model.name):  # else another archive is about to take its place
                self._forget(lambda name: name == model.name)
        elif versions.default == model.version:
            versions.default = next(iter(versions.models))

    def set_default(self, name: str, version: str) -> None:
        """Choose the version that answers when a client names none.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
        """
        if name not in self._names:
            raise ModelNotFound(name)
        if version not in self._names[name].models:
            raise VersionNotFound(name, version, f"Model version {version} does not exist for model {name}")
        self._names[name].default = version


@mypyc_attr(allow_interpreted_subclasses=True)  # that of the simulation
class LiveVersions:
    """The versions that have, or may have, workers: they come and go here; `metrics` shows the registered ones.

    Attributes:
        loading: models that are not in the registry yet → the versions that they replace.
        leaving: the versions that are being retired, in the order of their retirement.
        stopping: the daemon is being stopped, and adds no version.
    """

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self.loading: dict[ModelVersion, ModelVersion] = {}
        self.leaving: dict[ModelVersion, None] = {}
        self.stopping = False
        self._registry = registry
        self.metrics = metrics

    def __iter__(self) -> Iterator[ModelVersion]:
        """Return an iterator over all of them, each once; they may change meanwhile."""
        return iter(dict.fromkeys((*self._registry, *self.loading, *self.leaving)))

    def check_going_on(self) -> None:
        """Raise Stopping if the daemon is being stopped."""
        if self.stopping:
            raise Stopping("The daemon is being stopped.")

    def add(self, model: ModelVersion) -> None:
        """Put a model into the registry: requests and metrics find it from now on.

        Raises:
            Stopping: the daemon is being stopped.
            Conflict: the version is registered, and has not failed.
        """
        self.check_going_on()
        model.replaces = self._registry.add(model)
        self.metrics.add(model.metrics)

    def switch(self, new: ModelVersion) -> None:
        """Put a loaded model into the place of the version that it replaces.

        Raises:
            VersionNotFound: the old version is no longer registered.
        """
        old = self.loading[new]
        self._registry.replace(old, new)
        del self.loading[new]
        self.metrics.replace(old.metrics, new.metrics)
        new.replaces, new.took_over = old, True

    def gone(self, model: ModelVersion) -> None:
        """Note that a version is retired."""
        del self.leaving[model]
        self.metrics.remove(model.metrics)
