"""The words of the seam that need nothing else: rows of the core's tables, protocols, the documents of versions.

Standard library only: the command line reads the tables of extensions (tables.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tsctl.daemon.events.events import Level
    from tsctl.daemon.model_settings.declarations import DeclaredTensor

Samples = Iterable[Iterable[tuple[tuple[str, ...], float]]]  # for each metric: the values of its labels, a number
Operations = Mapping[str, Mapping[str, dict[str, Any]]]  # path → method → operation, as OpenAPI has them


class VersionView(Enum):
    """A document that shows a version."""

    DESCRIPTION = auto()  # `tsctl describe`: fields of its `tsctl`
    MEMBERS = auto()  # the members beside that, which are TorchServe's: values in the place of the core's
    LIST = auto()  # `tsctl status`
    LIVE = auto()  # for those who watch: numbers as they change
    WORKER = auto()  # `/tsctl/worker`: settings of its workers that are other than its own


DETAILED = (VersionView.DESCRIPTION, VersionView.LIVE)


class EventRow(NamedTuple):
    """A kind of events: its name, the level of each, and its meaning."""

    name: str
    level: "Level"
    meaning: str


class MetricRow(NamedTuple):
    """A metric; if `asked`, only clients that ask for a metric by its name are shown it."""

    name: str
    kind: str  # `counter` or `gauge`; `histogram` of one that has no samples of its own
    help: str
    labels: tuple[str, ...] = ("model", "version")
    asked: bool = False


class FileKey(NamedTuple):
    """A key of TorchServe's config.properties that is no setting's (`Setting.key`)."""

    name: str
    read: bool = False  # whether `Extension.configure` gets its value; the others have no effect
    stops: Callable[[str], bool] | None = None  # whether a value asks for protection that there is none: no start
    why: str = ""  # the sentence for the operator then


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

    def operations(self) -> Operations:
        """Return the OpenAPI description of its routes."""
        return {}

    def operations_of(
        self, model: str, inputs: "Sequence[DeclaredTensor]", outputs: "Sequence[DeclaredTensor]"
    ) -> Operations:
        """Return the OpenAPI description of its routes of one model, with the tensors that the model declares."""
        return {}
