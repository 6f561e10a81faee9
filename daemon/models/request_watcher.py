"""The watcher of a version's requests: it sees each one before the version gets it, and may go on to watch its job."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.job import Job, Param


class RequestFacts(NamedTuple):
    """The facts of a request that its job does not have.

    Attributes:
        method, target: of the request; over gRPC, `POST` and the method's path.
        began: when its headers were complete, on the daemon's clock.
        client, peer: the sender, None if it is unknown, and its name for the access log, as `holder_of` takes them.
        repeated: repeats the request as a plain prediction; None if none would.
    """

    method: str
    target: str
    began: float
    client: LimitedClient | None
    peer: str
    repeated: Sequence[Param] | None


class ParameterHeader(NamedTuple):
    """The header that a parameter of a request in tensors stands for.

    Attributes:
        name: of the header.
        flag: the parameter is true or false; otherwise a text or a whole number, "" and 0 for none.
    """

    name: str
    flag: bool


class RequestWatcher(Protocol):
    """Sees the requests that a version is about to get."""

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        """See a request; may add a watcher to its job, and change the headers that its handler sees.

        Returns:
            Whether the job is taken, and not submitted: then the watcher ends it, or gives it back to the version.
        """
