"""The seam between the core and the shelf: all that a capability may be told by the core, and add to it.

The core registers, batches, predicts and restarts. Everything else is an extension: a folder below daemon/extensions/,
and one word in the tuple of daemon/server/extensions.py, the only file of the core that names one. Without folder and
word the capability is gone, and the daemon serves.

    Extension   declared once; says what it needs before a process is started, and is installed in a daemon
    Service     what it does in that daemon: routes, servers, files, timers; the core's own parts are services, too

This module imports nothing of the daemon when it runs, since the command line reads the tables of extensions.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tsctl.daemon.api.inference.turns import Turns
    from tsctl.daemon.api.openapi import Operation
    from tsctl.daemon.batching.dispatcher import Dispatcher
    from tsctl.daemon.config.config import Config
    from tsctl.daemon.config.tokens import Tokens
    from tsctl.daemon.core.arena import Take
    from tsctl.daemon.core.client import Clients
    from tsctl.daemon.core.clock import Clock
    from tsctl.daemon.core.logs import OutputLog
    from tsctl.daemon.core.machine.gpu import Gpus
    from tsctl.daemon.events.event import Level
    from tsctl.daemon.events.events import Events
    from tsctl.daemon.events.recurring import Recurring
    from tsctl.daemon.http.bounds.receiving import ReceiveBudget
    from tsctl.daemon.http.bounds.sending import SendBudget
    from tsctl.daemon.http.messages import Request
    from tsctl.daemon.http.router import Route
    from tsctl.daemon.lifecycle.supervision import SupervisedServer
    from tsctl.daemon.metrics.exposition import MetricFamily
    from tsctl.daemon.metrics.metrics import Metrics
    from tsctl.daemon.metrics.torchserve.selection import Selection
    from tsctl.daemon.model_settings.declarations import DeclaredTensor
    from tsctl.daemon.model_settings.row import ModelSetting
    from tsctl.daemon.models.registrar import Registrar
    from tsctl.daemon.models.registry import Registry
    from tsctl.daemon.models.reservations import Reservation
    from tsctl.daemon.models.settings import ModelSettings
    from tsctl.daemon.models.version import ModelVersion
    from tsctl.daemon.setting_values import Setting
    from tsctl.daemon.workers.engine import WorkerSpec
    from tsctl.daemon.workers.processes.templates.tree import Templates


Operations = Mapping[str, Mapping[str, dict[str, Any]]]  # path → method → operation, as OpenAPI has them


class Audience(Enum):
    """The clients that may ask for a route."""

    CLIENTS = auto()  # of the inference addresses, and of the control socket
    MANAGERS = auto()  # of the management addresses, and of the control socket
    OPERATORS = auto()  # of the control socket alone


class EventRow(NamedTuple):
    """A kind of events that an extension adds: its name, the level of each, and its meaning."""

    name: str
    level: "Level"
    meaning: str


class MetricRow(NamedTuple):
    """A metric that an extension adds.

    Attributes:
        kind: `counter` or `gauge`.
        labels: their names.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ("model", "version")


class FileKey(NamedTuple):
    """A key of TorchServe's config.properties that an extension adds, and that is no setting's (`Setting.key`).

    Attributes:
        read: whether `Extension.read_keys` gets its value; the others have no effect.
        stops: whether a value asks for protection that the daemon would not provide; it stops the start.
        why: the sentence for the operator then.
    """

    name: str
    read: bool = False
    stops: Callable[[str], bool] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The parts of a daemon that an extension may use.

    Attributes:
        clients: those that an extension knows; None if none does.
        ready: returns whether every model to be served from the start is registered or has failed, the daemon is not
            stopping, and there is room for a request.
        turns: reads large bodies, a slice at a time.
        receiving: the budget for bodies that arrive.
        sending: makes a budget for answers that their clients have not taken.
        take: returns a place in the arena; None for no arena.
        answered: to be called with each request that was not answered over HTTP, its status, and its seconds.
        predictions: the core's routes of predictions, by the first segment of a path.
        management: returns the routes of the management addresses, those of all extensions, too.
        soon: makes a call on the event loop; from any thread.
        spare: to be called with the pid of a child process that is no worker, and not to be ended as a leftover.
        templates: keep the models of versions without workers; None where workers are no processes.
    """

    config: "Config"
    tokens: "Tokens"
    clients: "Clients | None"
    clock: "Clock"
    events: "Events"
    recurring: "Recurring"
    metrics: "Metrics"
    selection: "Selection"
    gpus: "Gpus"
    registry: "Registry"
    registrar: "Registrar"
    ready: Callable[[], bool]
    turns: "Turns"
    receiving: "ReceiveBudget"
    sending: "Callable[[], SendBudget]"
    take: "Take | None"
    answered: "Callable[[Request, int, float], None]"
    predictions: "Mapping[str, Route]"
    management: "Callable[[], Mapping[str, Route]]"
    soon: Callable[[Callable[[], None]], None]
    spare: Callable[[int], None]
    templates: "Templates | None" = None


class Service:
    """A part of one daemon, of an extension or of the core; each member does nothing by default.

        restore ─▶ begin ─▶ bind ─▶ the daemon listens ─▶ serve ─▶ servers begin ─▶ loaded
        told to stop ─▶ settle ─▶ no connection is accepted ─▶ leave ─▶ the last answers have left ─▶ close

    Services are begun in order, and closed in the reverse one.

    Attributes:
        servers: begun once the daemon listens, and begun again when they end.
        answered: called with each answered request, its status, and its seconds; None for nobody.
        copy: a model's name and version → the receiver of a copy of its workers' output; None for no copies.
        measures: whether `keep` returns measurements, for whose changes alone the snapshot is not written.
    """

    servers: "Sequence[SupervisedServer]" = ()
    answered: "Callable[[Request, int, float], None] | None" = None
    copy: "Callable[[str, str], OutputLog] | None" = None
    measures = False

    def routes(self, audience: Audience) -> "Mapping[str, Route]":  # noqa: ARG002 - has none by default
        """Return the routes for these: first path segment → function. They are asked before the core's."""
        return {}

    def operations(self) -> "Mapping[str, Mapping[str, Operation]]":
        """Return the routes for managers as OpenAPI describes them: path → method → operation."""
        return {}

    @property
    def addresses(self) -> Sequence[str]:
        """The addresses that the service has bound, as URLs."""
        return ()

    def document(self) -> Mapping[str, Any]:
        """Return the service's fields of `tsctl status`."""
        return {}

    def describe(self, model: "ModelVersion") -> Mapping[str, Any]:  # noqa: ARG002
        """Return the service's fields of a version's document, in `tsctl`; an object there gets those of its name."""
        return {}

    def members(self, model: "ModelVersion") -> Mapping[str, Any]:  # noqa: ARG002
        """Return members of a version's document as TorchServe has them, in place of the core's."""
        return {}

    def listed(self, model: "ModelVersion") -> Mapping[str, Any]:  # noqa: ARG002
        """Return the service's fields of a version in lists: of `tsctl status`, and in `/tsctl/live`."""
        return {}

    def live(self, model: "ModelVersion") -> Mapping[str, Any]:  # noqa: ARG002
        """Return the service's further fields of a version in `/tsctl/live`, from which `tsctl top` draws."""
        return {}

    def overview(self) -> Mapping[str, Any]:
        """Return the service's fields of `/tsctl/live` itself, beside those of its versions."""
        return {}

    def settings(self, model: "ModelVersion") -> Mapping[str, Any]:  # noqa: ARG002
        """Return the settings, by their names in model-config.yaml, that a version's workers really have.

        Only those that are other than the version's own: by these it is served elsewhere, as `tsctl tune` does.
        """
        return {}

    def families(self) -> "Iterable[MetricFamily]":
        """Return the service's metrics as they are now."""
        return ()

    def named_families(self, names: "Collection[str]") -> "Iterable[MetricFamily]":  # noqa: ARG002
        """Return metrics that are shown only to clients that ask for some of these names."""
        return ()

    def dispatcher(self, settings: "ModelSettings") -> "type[Dispatcher] | None":  # noqa: ARG002
        """Return the dispatcher of a version with these settings; None for the core's, or that of a later service."""
        return None

    def specify(self, settings: "ModelSettings", spec: "WorkerSpec") -> "WorkerSpec":  # noqa: ARG002
        """Return the configuration of a version's workers in this daemon: the given one, or another.

        Raises:
            BadRequest: the settings ask for something that this daemon does not have.
            InvalidModel: the settings contradict each other.
        """
        return spec

    def attach(self, model: "ModelVersion") -> None:
        """Note that a version was made: it is not registered yet, and has no worker.

        Its `presence` may be replaced now.
        """

    def replacing(self, old: "ModelVersion", new: "ModelVersion") -> None:
        """Note that a version begins to load, to take the place of another one."""

    def reserves(self, name: str) -> "Reservation | None":  # noqa: ARG002
        """Return the reservation of a model, while the service alone changes which of its versions answer."""
        return None

    async def leaving(self, model: "ModelVersion", why: str) -> None:
        """Let go of a version that is about to be unregistered, whatever it is reserved for."""

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Forget models that are gone: those for whose names `gone` returns true."""

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return what the snapshot is to hold of the service, for `restore`; None for nothing.

        Args:
            last: another daemon begins with this snapshot: what changes all the time is written, too.
        """
        return None

    def restore(self, kept: Any) -> None:
        """Take up what an earlier run has kept, before its versions are registered.

        Raises:
            ValueError: another program may have written it. It is kept aside, and the service goes on without.
        """

    def begin(self) -> None:
        """Begin, before the daemon listens."""

    def bind(self, *, alone: bool) -> None:
        """Bind the service's own addresses.

        Args:
            alone: whether nobody else may be bound to them: the daemon replaces none.

        Raises:
            StartError: an address cannot be used.
        """

    def serve(self) -> None:
        """Go on: the daemon listens."""

    def loaded(self) -> None:
        """Go on: what is served from the start is loaded, or has failed."""

    async def settle(self, *, replaced: bool) -> None:
        """Bring to an end what must not be cut off: the daemon will stop, or another one has replaced it."""

    async def leave(self, grace: float) -> None:
        """Accept nothing more, and wait for what is running, at most `grace` seconds."""

    def close(self) -> None:
        """End: every answer has left."""


class RoutesService(Service):
    """A service that is nothing but routes.

    Args:
        clients, managers: first path segment → function, for each audience.
    """

    def __init__(
        self, clients: "Mapping[str, Route] | None" = None, managers: "Mapping[str, Route] | None" = None
    ) -> None:
        self._routes = {Audience.CLIENTS: clients or {}, Audience.MANAGERS: managers or {}}

    def routes(self, audience: Audience) -> "Mapping[str, Route]":
        return self._routes.get(audience, {})


class BackgroundService(Service):
    """A service that is nothing but an object with a begin and an end, as a ticker is.

    Args:
        begin, settle, close: called as the service's own.
    """

    def __init__(
        self,
        begin: Callable[[], None] = lambda: None,
        settle: Callable[[], None] = lambda: None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self._settle, self._close = begin, settle, close

    def begin(self) -> None:
        self._begin()

    async def settle(self, *, replaced: bool) -> None:
        del replaced
        self._settle()

    def close(self) -> None:
        self._close()


class PathFacts(NamedTuple):
    """A path at the inference addresses, as far as the core must know it before its route is asked.

    Attributes:
        model: named by the path; None if another part of the request names it, or none is named.
        runs: whether a model runs for the request, which waits while that model is being registered.
        manages: whether it belongs to the management API.
    """

    model: str | None = None
    runs: bool = True
    manages: bool = False


class ClientProtocol:
    """A protocol that an extension speaks at the inference addresses; each member does nothing by default.

    Attributes:
        segments: first segments of its paths.
        prefixes: beginnings of the targets whose errors it words; others have TorchServe's document.
        unguarded: paths that need no token, by their first two segments: `v9/health`.
        failure_status: of an answer there whose handler has failed; 0 for TorchServe's 503.
    """

    segments: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    unguarded: tuple[str, ...] = ()
    failure_status: int = 0

    def facts(self, path: list[str]) -> PathFacts | None:  # noqa: ARG002
        """Return the facts of a path below one of its segments; None if the path is none of its own."""
        return None

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the members of an error's document, before those of TorchServe's."""
        return {}

    def operations(self) -> "Operations":
        """Return the OpenAPI description of its routes."""
        return {}

    def operations_of(
        self,
        model: str,  # noqa: ARG002
        inputs: "Sequence[DeclaredTensor]",  # noqa: ARG002
        outputs: "Sequence[DeclaredTensor]",  # noqa: ARG002
    ) -> "Operations":
        """Return the OpenAPI description of its routes of one model, with the tensors that the model declares."""
        return {}


class Extension:
    """A capability that the daemon can do without. A subclass is declared in daemon/extensions/NAME/__init__.py.

    That module imports nothing else of the daemon until it is called, since the command line reads its tables.

    Attributes:
        settings, model_settings: rows of the tables of the daemon's and of a model's settings (daemon/tables.py).
        events: kinds of events that it adds.
        help_groups: titles of `--help`, each with the names of the rows above that stand below it.
        metrics: the families that its service yields.
        batch_reasons: names of reasons for which its dispatcher sends batches, each with its meaning.
        file_keys: keys of config.properties that are no setting's.
        protocol: spoken at the inference addresses; None for none.
    """

    name = ""
    settings: "tuple[Setting, ...]" = ()
    model_settings: "tuple[ModelSetting, ...]" = ()
    events: "tuple[EventRow, ...]" = ()
    help_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    metrics: tuple[MetricRow, ...] = ()
    batch_reasons: tuple[tuple[str, str], ...] = ()
    protocol: ClientProtocol | None = None
    file_keys: tuple[FileKey, ...] = ()

    def read_keys(
        self,
        keys: Mapping[str, str],  # noqa: ARG002
        values: Mapping[str, Any],  # noqa: ARG002
        *,
        token: bool,  # noqa: ARG002
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Return the values of settings that these keys name together, and notes for the operator.

        Args:
            keys: those of `file_keys` with `read` that config.properties has, and their values.
            values: by the names of settings.
            token: whether a management token is set.
        """
        return {}, ()

    def configure(
        self,
        values: dict[str, Any],  # noqa: ARG002
        places: Mapping[str, str],  # noqa: ARG002
        environment: Mapping[str, str],  # noqa: ARG002
    ) -> Sequence[str]:
        """Complete the configuration, and return notes for the operator.

        Args:
            values: by the names of settings; more may be added, which become attributes of `Config`.
            places: where a setting was said: a flag, a variable, or a file's line.

        Raises:
            StartError: a value cannot be used.
        """
        return ()

    def prepare(self, config: "Config") -> None:
        """Prepare the process, before it has threads."""

    def check(self, config: "Config") -> None:
        """Check what the configuration asks of the machine, before any process is started.

        Raises:
            StartError: a package is missing.
        """

    def clients(self, config: "Config", clock: "Clock", events: "Events") -> "Clients | None":  # noqa: ARG002
        """Return the clients of the inference addresses that it knows; None if the configuration names none.

        Raises:
            StartError: what the configuration names cannot be used.
        """
        return None

    def environment(self, config: "Config") -> Mapping[str, str]:  # noqa: ARG002
        """Return variables of the environment of all workers; one that is set by hand stays."""
        return {}

    def without_effect(self, document: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG002
        """Return the keys of a model-config.yaml that are set, and have no effect."""
        return ()

    def specify(self, settings: "ModelSettings", spec: "WorkerSpec") -> "WorkerSpec":  # noqa: ARG002
        """Return the configuration of a version's workers, with or without a daemon: the given one, or another.

        Raises:
            InvalidModel: the settings contradict each other.
        """
        return spec

    def describe(self, model: "ModelVersion", config: "Config") -> Mapping[str, Any]:  # noqa: ARG002
        """Return the extension's fields of a version that `tsctl check` has loaded, without any service."""
        return {}

    def install(self, kernel: Kernel) -> Service | None:
        """Return the service in one daemon; None if its configuration does not ask for it.

        Raises:
            StartError: what the configuration asks for cannot be done.
        """
        del kernel
        return None
