"""The one way of a request to its model, whichever protocol it came by.

A protocol reads its envelope and writes its answers. Between the two, the same holds for each: what its client may do,
what is recorded, copied to a shadow and traced, and which refusals count.
"""

from collections.abc import Callable, Sequence

from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.job import Caller, Job, Param, Reply, TimeBudget
from tsctl.daemon.core.timing import Timing
from tsctl.daemon.http.deadline_header import PRIORITY_HEADER
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import Head

CLIENT_TIMEOUT = "clientTimeoutInMills"


def submit(
    model: ModelVersion,
    id: str,  # noqa: A002 - the name that a job has for it
    params: Sequence[Param],
    headers: Sequence[tuple[str, str]],
    arrived: float,
    deliver: Callable[[Reply], None],
    stream: Callable[[Reply], None],
    *,
    unnamed: bool,
    low_priority: bool,
    budget: TimeBudget | None,
    client: LimitedClient | None,
    peer: str,
    size: int,
    method: str,
    target: str,
    began: float,
    infer: Head | None = None,
    kept: Sequence[Param] | None = None,
    timing: Timing | None = None,
    caller: Caller | None = None,
    later: Callable[[ModelVersion, Job], None] | None = None,
) -> Job:
    """Submit a request's job, and return it; each refusal counts for the version.

    Keywords, not a record: an object more for each request would be read once.

    Args:
        headers: for the handler.
        arrived: when the request was complete, on the daemon's clock.
        deliver, stream: take the last reply, and the pieces before it.
        unnamed: the client named no version.
        client: the sender, if it is known.
        size: bytes that the client has sent, for its own limit.
        method, target, began: as in `RequestFacts`.
        infer, timing, caller: as in `Job`.
        kept: `repeated` of `RequestFacts`.
        later: submits the job in place of `ModelVersion.submit`.

    Raises:
        ModelNotAllowed: the client may not use the model.
        BodyTooLong: the client may not send so many bytes.
        TooManyRequests: the client's rate does not allow the request yet.
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
    """
    if client is not None:
        try:
            client.admit(model.name, size, model.clock.now())
        except DaemonError as error:
            model.metrics.refused(error)
            raise
        low_priority = low_priority or client.low_priority
    job = Job(
        id, params, headers, arrived, deliver, stream,
        unnamed=unnamed, low_priority=low_priority, budget=budget, caller=caller,
    )  # fmt: skip
    job.timing = timing
    job.infer = infer
    if model.watchers:
        asked = RequestFacts(method, target, began, client, peer, kept)
        taken = False
        for watcher in model.watchers:
            taken = watcher.watch(job, asked) or taken
        if taken:
            model.taken.add_job(job)
            return job
    if later is None:
        model.submit(job)
    else:
        later(model, job)
    return job


def budget_of(asked: float | None, most: float, since: float, source: str) -> TimeBudget | None:
    """Return the time that a request may take; None without a limit.

    Args:
        asked: the client's deadline in seconds, None for none.
        most: the model's limit in seconds, 0.0 for none; caps the client's.
        since: when the request began, on the daemon's clock.
        source: where the client's deadline comes from, in words.
    """
    if asked is not None and (not most or asked <= most):
        return TimeBudget(asked, since, source, asked != most)
    return TimeBudget(most, since, CLIENT_TIMEOUT) if most else None


def is_low(priority: str | None) -> bool:
    """Return whether a priority is low; None is a request's that has none.

    Raises:
        BadRequest: the priority is unknown.
    """
    if priority is None:
        return False
    if priority not in ("low", "normal"):
        raise BadRequest(f"{PRIORITY_HEADER} is `{priority}`; expected low or normal.")
    return priority == "low"
