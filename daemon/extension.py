"""The seam between the core and the shelf: all that a capability may be told by the core, and add to it.

A capability is a folder below daemon/extensions/ and one word in the tuple of daemon/server/extensions.py, the only
file of the core that names one; docs/design/architecture.md draws it, CONTRIBUTING.md adds one. `Extension` says what
it needs before a process is started, and is installed in a daemon as a `Service`, as the core's own parts are. This
module imports nothing of the daemon when it runs, since the command line reads the tables of extensions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tsctl.daemon.api.answered import AnsweredRequests
    from tsctl.daemon.api.inference.turns import Turns
    from tsctl.daemon.api.openapi import Operation
    from tsctl.daemon.batching.dispatcher import Dispatcher
    from tsctl.daemon.config.config import Config
    from tsctl.daemon.config.tokens import Tokens
    from tsctl.daemon.core.arena import Take
    from tsctl.daemon.core.client import Clients
    from tsctl.daemon.core.clock import Clock
    from tsctl.daemon.core.logs import ModelLogs
    from tsctl.daemon.core.machine.gpu import Gpus
    from tsctl.daemon.events.events import Events, Level
    from tsctl.daemon.events.recurring import Recurring
    from tsctl.daemon.http.bounds.receiving import ReceiveBudget
    from tsctl.daemon.http.bounds.sending import SendBudget
    from tsctl.daemon.http.router import Route
    from tsctl.daemon.lifecycle.supervision import SupervisedServer
    from tsctl.daemon.metrics.metrics import Metrics
    from tsctl.daemon.metrics.torchserve.selection import Selection
    from tsctl.daemon.model_settings.declarations import DeclaredTensor
    from tsctl.daemon.model_settings.row import ModelSetting
    from tsctl.daemon.models.registrar import Registrar
    from tsctl.daemon.models.registry import Registry
    from tsctl.daemon.models.settings import ModelSettings
    from tsctl.daemon.models.version import ModelVersion
    from tsctl.daemon.setting_values import Setting
    from tsctl.daemon.workers.engine import WorkerSpec
    from tsctl.daemon.workers.processes.templates.tree import Templates


Samples = Iterable[Iterable[tuple[tuple[str, ...], float]]]  # for each metric: the values of its labels, a number
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
    """A metric that an extension adds; if `asked`, only clients that ask for a metric by its name are shown it."""

    name: str
    kind: str  # `counter` or `gauge`
    help: str
    labels: tuple[str, ...] = ("model", "version")
    asked: bool = False


class FileKey(NamedTuple):
    """A key of TorchServe's config.properties that an extension adds, and that is no setting's (`Setting.key`)."""

    name: str
    read: bool = False  # whether `Extension.read_keys` gets its value; the others have no effect
    stops: Callable[[str], bool] | None = None  # whether a value asks for protection that there is none: no start
    why: str = ""  # the sentence for the operator then


@dataclass(frozen=True, slots=True)
class Kernel:
    """The parts of a daemon that an extension may use."""

    config: "Config"
    tokens: "Tokens"
    clients: "Clients | None"  # those that an extension knows; None if none does
    clock: "Clock"
    events: "Events"
    recurring: "Recurring"
    metrics: "Metrics"
    selection: "Selection"
    gpus: "Gpus"
    registry: "Registry"
    registrar: "Registrar"
    ready: Callable[[], bool]  # every model to be served from the start is loaded or has failed, and there is room
    turns: "Turns"  # reads large bodies, a slice at a time
    receiving: "ReceiveBudget"  # for bodies that arrive
    sending: "Callable[[], SendBudget]"  # makes a budget for answers that their clients have not taken
    take: "Take | None"  # returns a place in the arena; None for no arena
    requests: "AnsweredRequests"  # notes each answered request, of any protocol; a service adds a call to `others`
    logs: "ModelLogs"  # of the output of workers
    predictions: "Mapping[str, Route]"  # the core's routes of predictions, by the first segment of a path
    management: "Callable[[], Mapping[str, Route]]"  # the routes of managers, those of all extensions, too
    soon: Callable[[Callable[[], None]], None]  # makes a call on the event loop; from any thread
    spare: Callable[[int], None]  # told the pid of a child process that is no worker, and no leftover
    templates: "Templates | None" = None  # keep models of versions without workers; None where workers are no processes


class Service:
    """A part of one daemon, of an extension or of the core; each member does nothing by default.

        restore ─▶ begin ─▶ bind ─▶ the daemon listens ─▶ serve ─▶ servers begin
        told to stop ─▶ settle ─▶ no connection is accepted ─▶ leave ─▶ the last answers have left ─▶ close

    Services are begun in order, and closed in the reverse one. What happens to models, requests and output a service
    learns from the part of the kernel that does it, to whose list it adds a call: `registrar.replacing.begun`,
    `registrar.leaving`, `registry.forgetting`, `registrar.ledger.saved`, `requests.others`, `logs.copies`.
    """

    servers: "Sequence[SupervisedServer]" = ()  # at addresses of its own (`bind`); begun again when they end
    metrics: tuple[MetricRow, ...] = ()  # of its extension, from its installation on
    needs = ""  # as of its extension, from its installation on
    measures = False  # `keep` returns measurements, for whose changes alone the snapshot is not written

    def routes(self, audience: Audience) -> "Mapping[str, Route]":
        """Return the routes for these: first path segment, or `models/*/route` → function; asked before the core's."""
        return {}

    def operations(self) -> "Mapping[str, Mapping[str, Operation]]":
        """Return the routes for managers as OpenAPI describes them: path → method → operation."""
        return {}

    def document(self) -> Mapping[str, Any]:
        """Return the service's fields of the daemon itself, in `tsctl status` and `/tsctl/live`."""
        return {}

    def describe(self, model: "ModelVersion") -> Mapping[str, Any]:
        """Return the service's fields of a version's document, in `tsctl`; an object there gets those of its name."""
        return {}

    def members(self, model: "ModelVersion") -> Mapping[str, Any]:
        """Return members of a version's document as TorchServe has them, in place of the core's."""
        return {}

    def listed(self, model: "ModelVersion") -> Mapping[str, Any]:
        """Return the service's fields of a version in lists: of `tsctl status`, and in `/tsctl/live`."""
        return {}

    def live(self, model: "ModelVersion") -> Mapping[str, Any]:
        """Return the service's further fields of a version in `/tsctl/live`, from which `tsctl top` draws."""
        return {}

    def settings(self, model: "ModelVersion") -> Mapping[str, Any]:
        """Return settings that a version's workers have other than its own: nobody but a trial chooses such ones."""
        return {}

    def samples(self) -> Samples:
        """Return for each of its extension's metrics the samples as they are now: the labels' values, and a number."""
        return ()

    def dispatcher(self, settings: "ModelSettings") -> "type[Dispatcher] | None":
        """Return the dispatcher of a version with these settings; None for the core's, or that of a later service."""
        return None

    def attach(self, model: "ModelVersion") -> None:
        """Note that a version was made, without workers and not registered, or was set what `needs` names.

        The `presence` of one that was just made may be replaced.
        """

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        """Return what the snapshot holds for `restore`; what changes all the time only if it is the `last` one."""
        return None

    def restore(self, kept: Any) -> None:
        """Take up what an earlier run has kept, before its versions are registered; ValueError puts it aside."""

    def begin(self) -> None:
        """Begin, before the daemon listens."""

    def bind(self, *, alone: bool) -> Sequence[str]:
        """Bind the addresses of `servers`, `alone` unless the daemon replaces another one; raises StartError.

        Returns the addresses as URLs. After `begin`, since a daemon that takes over may wait long between the two.
        """
        return ()

    def serve(self) -> None:
        """Go on: the daemon listens."""

    async def settle(self, *, replaced: bool) -> None:
        """Bring to an end what must not be cut off: the daemon will stop, or another one has replaced it."""

    async def leave(self, grace: float) -> None:
        """Accept nothing more, and wait for what is running, at most `grace` seconds."""

    def close(self) -> None:
        """End: every answer has left."""


class PathFacts(NamedTuple):
    """A path at the inference addresses, as far as the core must know it before its route is asked."""

    model: str | None = None  # named by the path; None if another part of the request names it, or none is named
    runs: bool = True  # a model runs for the request, which waits while that model is being registered
    manages: bool = False  # it belongs to the management API


class ClientProtocol:
    """A protocol that an extension speaks at the inference addresses; each member does nothing by default."""

    segments: tuple[str, ...] = ()  # first segments of its paths
    prefixes: tuple[str, ...] = ()  # beginnings of the targets whose errors it words
    unguarded: tuple[str, ...] = ()  # paths that need no token, by their first two segments: `v9/health`
    failure_status: int = 0  # of an answer there whose handler has failed; 0 for TorchServe's 503

    def facts(self, path: list[str]) -> PathFacts | None:
        """Return the facts of a path below one of its segments; None if the path is none of its own."""
        return None

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Return the members of an error's document, before those of TorchServe's."""
        return {}

    def operations(self) -> "Operations":
        """Return the OpenAPI description of its routes."""
        return {}

    def operations_of(
        self, model: str, inputs: "Sequence[DeclaredTensor]", outputs: "Sequence[DeclaredTensor]"
    ) -> "Operations":
        """Return the OpenAPI description of its routes of one model, with the tensors that the model declares."""
        return {}


class Extension:
    """A capability that the daemon can do without. A subclass is declared in daemon/extensions/NAME/__init__.py.

    That module imports nothing else of the daemon until it is called, since the command line reads its tables.
    """

    name = ""
    needs = ""  # a model setting: versions that have its default are none of the extension's (`attach`, `specify`)
    settings: "tuple[Setting, ...]" = ()  # rows of the daemon's settings (daemon/tables.py)
    model_settings: "tuple[ModelSetting, ...]" = ()
    events: "tuple[EventRow, ...]" = ()
    help_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # titles of `--help` → the names of rows above
    metrics: tuple[MetricRow, ...] = ()  # whose samples its service returns
    batch_reasons: tuple[tuple[str, str], ...] = ()  # for which its dispatcher sends batches, with their meaning
    protocol: ClientProtocol | None = None
    file_keys: tuple[FileKey, ...] = ()  # of config.properties that are no setting's

    def read_keys(
        self, keys: Mapping[str, str], values: Mapping[str, Any], *, token: bool
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Return the values of settings that these of `file_keys` name together, and notes for the operator.

        No `Setting.key` can: TorchServe has an address and a port where the daemon has one setting.
        """
        return {}, ()

    def configure(
        self, values: dict[str, Any], places: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        """Complete the configuration, and return notes for the operator; raises StartError.

        More `values` may be added, which become attributes of `Config`; `worker_variables` among them are those of the
        environment of all workers, where one that is set by hand stays. `places` says where each setting was said.
        """
        return ()

    def prepare(self, config: "Config") -> None:
        """Prepare the process, and check what the configuration asks of the machine; raises StartError.

        It has no threads yet, nor children but the first template.
        """

    def clients(self, config: "Config", clock: "Clock", events: "Events") -> "Clients | None":
        """Return the clients that it knows; None if the configuration names none; raises StartError.

        Before anything is installed, since the daemon's servers admit requests by them.
        """
        return None

    def specify(self, settings: "ModelSettings", spec: "WorkerSpec") -> "WorkerSpec":
        """Return the configuration of a version's workers, with or without a daemon; raises InvalidModel.

        A service completes that of its daemon's workers: `registrar.factory.specified`.
        """
        return spec

    def describe(self, model: "ModelVersion", config: "Config") -> Mapping[str, Any]:
        """Return the extension's fields of a version that `tsctl check` has loaded, without any daemon."""
        return {}

    def install(self, kernel: Kernel) -> Service | None:
        """Return the service in one daemon; None if its configuration does not ask for it; raises StartError."""
        return None
