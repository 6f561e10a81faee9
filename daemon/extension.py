"""The seam between the core and the shelf: all that a capability may be told by the core, and add to it.

A capability is a folder of daemon/extensions/ and a word in the tuple of daemon/server/extensions.py (CONTRIBUTING.md).
Until they are called, it and this module import declarations.py alone: the command line reads the extensions' tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tsctl.daemon.declarations import ClientProtocol, EventRow, FileKey, MetricRow, Operations, Samples, VersionView

if TYPE_CHECKING:
    from tsctl.daemon.api.inference.turns import Turns
    from tsctl.daemon.config.config import Config
    from tsctl.daemon.config.tokens import Tokens
    from tsctl.daemon.core.clock import Clock
    from tsctl.daemon.core.machine.gpu import Gpus
    from tsctl.daemon.http.router import Audience, Route
    from tsctl.daemon.lifecycle.supervision import OwnServer
    from tsctl.daemon.model_settings.row import ModelSetting
    from tsctl.daemon.models.registrar import Registrar
    from tsctl.daemon.models.registry import Registry
    from tsctl.daemon.models.settings import ModelSettings
    from tsctl.daemon.models.version import ModelVersion
    from tsctl.daemon.server.bounds import Bounds
    from tsctl.daemon.server.fields import Fields
    from tsctl.daemon.server.observation import Observation
    from tsctl.daemon.setting_values import Setting
    from tsctl.daemon.workers.engine import WorkerSpec
    from tsctl.daemon.workers.processes.templates.tree import Templates


class Extension:
    """A capability that the daemon can do without. A subclass is declared in daemon/extensions/NAME/__init__.py."""

    name = ""
    needs = ""  # a model setting: of versions that never had another value than its default, none is followed
    settings: "tuple[Setting, ...]" = ()  # rows of the daemon's settings (daemon/tables.py)
    model_settings: "tuple[ModelSetting, ...]" = ()
    events: tuple[EventRow, ...] = ()
    metrics: tuple[MetricRow, ...] = ()  # whose samples its service returns, unless it shows them itself
    batch_reasons: tuple[tuple[str, str], ...] = ()  # for which its dispatcher sends batches, with their meaning
    protocol: ClientProtocol | None = None
    file_keys: tuple[FileKey, ...] = ()  # of config.properties that are no setting's
    schemes: tuple[str, ...] = ()  # of URLs, whose archives its service downloads (`Archives.fetchers`)

    def configure(
        self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        """Complete the configuration, and return notes for the operator; raises StartError.

        More `values` may be added, which become attributes of `Config`; `worker_variables` among them are those of the
        environment of all workers, where one that is set by hand stays. `keys`: of `file_keys` those in the file.
        """
        return ()

    def specify(self, settings: "ModelSettings", spec: "WorkerSpec") -> "WorkerSpec":
        """Return the configuration of a version's workers, with or without a daemon; raises InvalidModel."""
        return spec

    def describe(self, model: "ModelVersion", config: "Config") -> Mapping[str, Any]:
        """Return the extension's fields of a version that `tsctl check` has loaded, without any daemon."""
        return {}

    def operations(self, *, own: bool) -> Operations:
        """Return its service's routes as OpenAPI describes them: for managers, or its `own`, of the control socket."""
        return {}

    def install(self, kernel: "Kernel") -> "Service | None":
        """Return the service in one daemon, and start no thread; None if it is not asked for; raises StartError."""
        return None


@dataclass(frozen=True, slots=True)
class Kernel:
    """The parts of a daemon that an extension may use."""

    config: "Config"
    tokens: "Tokens"  # and the known clients, when all are installed
    clock: "Clock"
    observation: "Observation"  # of it `events`, `recurring`, `metrics`, `selection`, `requests`, `soon`
    bounds: "Bounds"  # of the memory for bodies and answers
    gpus: "Gpus"
    registry: "Registry"
    registrar: "Registrar"
    ready: Callable[[], bool]  # every model to be served from the start is loaded or has failed, and there is room
    turns: "Turns"  # reads large bodies, a slice at a time
    spare: Callable[[int], None]  # told the pid of a child process that is no worker, and no leftover
    fields: "Fields"  # what all services show, once they are installed
    templates: "Templates | None" = None  # keep models of versions without workers; None where workers are no processes


class Service:
    """A part of one daemon, begun in order, and closed in the reverse one. What is not overridden does nothing.

    restore ─▶ servers ─▶ the daemon listens ─▶ begin
    told to stop ─▶ settle ─▶ no connection is accepted ─▶ servers are closed ─▶ the last answers have left ─▶ close
    """

    extension = Extension()  # its own, from its installation on
    measures = False  # `keep` returns measurements, for whose changes alone the snapshot is not written
    notes: Sequence[str] = ()  # for the operator, from its installation on: `warning: …` or `note: …`

    def routes(self, audience: "Audience") -> "Mapping[str, Route]":
        """Return the routes for these, asked before the core's: first segment, or `models/*`, or `models/*/route`."""
        return {}

    def document(self) -> Mapping[str, Any]:
        """Return the service's fields of the daemon itself, in `tsctl status` and for those who watch."""
        return {}

    def fields(self, model: "ModelVersion", view: VersionView) -> Mapping[str, Any]:
        """Return the service's fields of a version in one of its documents."""
        return {}

    def samples(self) -> Samples:
        """Return for each of its extension's metrics the samples as they are now: the labels' values, and a number."""
        return ()

    def follow(self, model: "ModelVersion") -> None:
        """Follow a version: give it what its settings ask for, take away what they do not, and change nothing twice.

        Called when it was made, without workers and not registered: its `presence`, `dispatcher` (`path.dispatch_by`)
        and `pool.spec` may be replaced then, and InvalidModel raised. Called again when its settings were changed, when
        it begins to load in another one's place, and when an operator tries it again.
        """

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        """Return what the snapshot holds for `restore`; what changes all the time only if it is the `last` one."""
        return None

    def restore(self, kept: Any) -> None:
        """Take up what an earlier run has kept, before its versions are registered; ValueError puts it aside."""

    def servers(self, managing: "Mapping[str, Route]", *, alone: bool) -> "Sequence[OwnServer]":
        """Return servers at bound addresses of their own, which no other daemon has if `alone`; raises StartError.

        The daemon begins them when it listens, and again when they end, and closes them. `managing`: managers' routes.
        """
        return ()

    def begin(self) -> None:
        """Begin: the daemon listens; after a takeover it has loaded its models, else it will load them."""

    async def settle(self, *, replaced: bool) -> None:
        """Bring to an end what must not be cut off: the daemon will stop, or another one has replaced it."""

    def close(self) -> None:
        """End: every answer has left."""
