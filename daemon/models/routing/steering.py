"""The version that answers a request: the one that it names, or that of the model's route, or the default one.

    named in the path (or the message)            that version
    named in the header `x-model-version`         that version; contradicting the path is an error
    the model has a route                         by weight (choice.py)
    otherwise                                     the default version

A request for a model without a route costs one look into an empty table more than without this module.
"""

from collections.abc import Sequence
from typing import Protocol

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.admission import check_first_load
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.routes import key_of
from tsctl.daemon.models.version import ModelVersion

VERSION_HEADER = "x-model-version"


class RequestHead(Protocol):
    """The part of a request, over HTTP or gRPC, that chooses a version.

    Attributes:
        headers: names and values.
        peer: the client's address.
        model_version: the header `x-model-version`, None without.
    """

    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...
    @property
    def peer(self) -> str: ...
    @property
    def model_version(self) -> str | None: ...


def steer(registry: Registry, name: str, version: str | None, head: RequestHead) -> ModelVersion:
    """Return the version that answers a request.

    Args:
        version: as the path, or the message, names it; None if it does not.

    Raises:
        ModelNotFound: no model has this name.
        VersionNotFound: the model has no such version.
        NoReadyWorker: the model could not be registered at the start.
        LoadingFirst: the first worker of the version is loading: nobody knows yet how its handler reads bodies.
        BadRequest: the header names another version than the path.
    """
    model = _chosen(registry, name, version, head)
    if not model.was_ready:
        check_first_load(model)
    return model


def _chosen(registry: Registry, name: str, version: str | None, head: RequestHead) -> ModelVersion:
    if head.model_version is not None:
        return registry.find(name, _named(version, head.model_version))
    by_model = registry.routes.by_model
    if not by_model or version is not None or name not in by_model:
        return registry.find(name, version)
    route = by_model[name]
    key = key_of(route, head.headers, head.peer)
    chosen = registry.routes.choose(route.weights, name, key)
    if not registry.holds(name, chosen) and not registry.expects(name):
        # The version could not be restored, or its registration has failed: the others share its requests.
        present = [each for each in route.weights if registry.holds(name, each[0])]
        return registry.find(name, registry.routes.choose(present, name, key) if present else None)
    return registry.find(name, chosen)


def steer_again(registry: Registry, chosen: ModelVersion, version: str | None, head: RequestHead) -> ModelVersion:
    """Return the version that answers a request whose body was read meanwhile: the same one, or its replacement.

    Args:
        chosen: by `steer`, when the body began.

    Raises:
        DaemonError: the version is gone; as `steer`.
    """
    if version is None and chosen.name in registry.routes and registry.holds(chosen.name, chosen.version):
        return registry.find(chosen.name, chosen.version)
    return steer(registry, chosen.name, version, head)


class Steered:
    """The version of one request: chosen by the first call, and found again by later ones, as `steer_again`."""

    __slots__ = ("_chosen", "_head", "_name", "_registry", "_version")

    def __init__(self, registry: Registry, name: str, version: str | None, head: RequestHead) -> None:
        self._registry = registry
        self._name = name
        self._version = version
        self._head = head
        self._chosen: ModelVersion | None = None

    def __call__(self) -> ModelVersion:
        """Return the version; raise as `steer`."""
        if self._chosen is None:
            self._chosen = steer(self._registry, self._name, self._version, self._head)
        else:
            self._chosen = steer_again(self._registry, self._chosen, self._version, self._head)
        return self._chosen


def answering(registry: Registry) -> list[ModelVersion]:
    """Return the versions that answer requests without a version, by model: those of its route, or the default one."""
    if not registry.routes:
        return registry.defaults()
    return [version for model in registry.defaults() for version in answering_of(registry, model.name)]


def answering_of(registry: Registry, name: str, version: str | None = None) -> list[ModelVersion]:
    """Return the version of this name, or without one those of the model that answer requests that name none.

    Raises:
        ModelNotFound: no model has this name.
        VersionNotFound: the model has no such version.
        NoReadyWorker: the model could not be registered at the start.
    """
    if version:
        return [registry.find(name, version)]
    route = registry.routes.of(name)
    weights = () if route is None else route.weights
    found = [registry.find(name, version) for version, _ in weights if registry.holds(name, version)]
    return found or [registry.find(name)]


def are_ready(models: list[ModelVersion]) -> bool:
    """Return whether each of these versions has a ready worker, or is loaded by a request."""
    return all(model.available for model in models)


def _named(version: str | None, asked: str) -> str:
    """Return the version that the header names. Raise BadRequest if the path names another."""
    if version is not None and version != asked:
        raise BadRequest(f"The request names version {version}, and its header {VERSION_HEADER} names {asked[:100]}.")
    return asked
