"""The daemon's errors: the messages and statuses that clients receive.

    DaemonError
    ├─ ModelNotFound · VersionNotFound · ResourceNotFound        404
    ├─ MethodNotAllowed                                          405
    ├─ BadRequest · InvalidModel · RequirementsFailed            400
    ├─ DownloadFailed                                            400
    ├─ MissingToken                                              401
    ├─ DefaultVersionKept · WrongToken · Forbidden               403
    ├─ Conflict                                                  409
    │  └─ BeingReplaced
    ├─ NotFailed                                                 409
    ├─ NoReadyWorker · Stopping · Upgrading · LimitReached       503
    │  └─ CutOff (a Stopping) · QueueFull (a LimitReached)
    ├─ PredictionFailed                                          503 (or the handler's own status)
    ├─ WorkerDied · ResponseTimeout · WorkersFailed                    500
    ├─ NotRemembered · UpgradeFailed                             500
    ├─ NotServed                                                 501
    │  └─ AnswersInPieces
    ├─ RequestExpired                                            504
    │  └─ WaitedTooLong · AnsweredTooLate · ReceivedTooSlowly
    └─ WorkerKilled · OutOfResources · NotStored                 507
    StartError                          the daemon cannot start; never sent over HTTP

`kind` is the `type` member of the JSON error document. Its values are those of
TorchServe 0.12, because clients match on them.
"""

from collections.abc import Callable
from pathlib import Path

from tsctl.daemon.core.timing import duration


class DaemonError(Exception):
    """Base class of the errors that are reported to clients and operators."""

    status = 500
    kind = "InternalServerException"
    retry_after: int | None = None  # seconds, for the Retry-After header
    headers: tuple[tuple[str, str], ...] = ()  # further headers of its answer
    refusal_label = ""  # of an extension's, where metrics count what is refused by it
    sentence = ""  # of one that says the same each time

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.sentence)


class LimitReached(DaemonError):
    """Too much is under way now; the same request may be served later."""

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1


class ModelNotFound(DaemonError):
    """The named model is not registered."""

    status = 404
    kind = "ModelNotFoundException"

    def __init__(self, name: str) -> None:
        super().__init__(f"Model not found: {name}")
        self.name = name


class ArchiveNotFound(DaemonError):
    """The archive of a registration does not exist, or must not be used."""

    status = 404
    kind = "ModelNotFoundException"


class VersionNotFound(DaemonError):
    """The model is registered, but not in this version."""

    status = 404
    kind = "ModelVersionNotFoundException"

    def __init__(self, name: str, version: str, message: str = "") -> None:
        super().__init__(message or f"Model version: {version} does not exist for model: {name}")
        self.name = name


class ResourceNotFound(DaemonError):
    """The request's path has no route."""

    status = 404
    kind = "ResourceNotFoundException"
    sentence = "Requested resource is not found, please refer to API document."


class WorkflowsNotServed(ResourceNotFound):
    """The request is one of TorchServe's for workflows."""

    sentence = (
        "Workflows are not served: register their models, and call them from one handler, or from the client. An"
        " archive `.war` holds the models' addresses in its specification."
    )


class TokensNotMade(ResourceNotFound):
    """The request is TorchServe's for a new token."""

    sentence = (
        "Tokens are not made by the daemon: whoever starts it names them, `--token-file` and"
        " `--inference-token-file`, and none expires while it runs."
    )


class MethodNotAllowed(DaemonError):
    """The route exists, but not with this method."""

    status = 405
    kind = "MethodNotAllowedException"
    sentence = "Requested method is not allowed, please refer to API document."


class RegistrationOff(MethodNotAllowed):
    """The address takes no registrations, and no unregistrations."""

    sentence = (
        "Models are not registered or unregistered at this address: start the daemon with `--enable-model-api`, or"
        " use the control socket (`tsctl register`)."
    )


class BadRequest(DaemonError):
    """The request is malformed, or a parameter is invalid."""

    status = 400
    kind = "BadRequestException"


class NotServed(DaemonError):
    """The protocol of the request has this, and this server does not; the sentence names it, and what to do."""

    status = 501
    kind = "NotServedException"


class AnswersInPieces(NotServed):
    """The route takes one answer, and the model answers in pieces."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Model {name} answers in pieces, and this route takes one answer: POST /predictions/{name} sends them as"
            f" they come, and POST /v2/models/{name}/generate_stream the pieces of a text."
        )


class InvalidModel(DaemonError):
    """The archive, or the configuration of the model, is invalid."""

    status = 400
    kind = "InvalidModelException"


class NotStored(DaemonError):
    """This machine cannot write an archive, or its files: the disk is full or read-only."""

    status = 507

    def __init__(self, archive: str, done: str, directory: Path, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"The archive `{archive}` cannot be {done} into `{directory}`: {reason}.")


class RequirementsFailed(DaemonError):
    """The archive's Python dependencies cannot be installed."""

    status = 400
    kind = "ModelException"


class DownloadFailed(DaemonError):
    """The archive could not be downloaded from its URL."""

    status = 400
    kind = "DownloadArchiveException"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Failed to download archive from: {url} ({reason})")


class MissingToken(DaemonError):
    """The address requires a token, and the request has none."""

    status = 401
    kind = "InvalidKeyException"
    headers = (("WWW-Authenticate", "Bearer"),)
    sentence = "Token missing (401): send the header `Authorization: Bearer TOKEN`."


class WrongToken(DaemonError):
    """The request's token is invalid."""

    status = 403
    kind = "InvalidKeyException"
    sentence = "Invalid token (403): this address does not accept the token of this request."


class Forbidden(DaemonError):
    """This address rejects the request, whatever its token."""

    status = 403
    kind = "ForbiddenException"


class DefaultVersionKept(DaemonError):
    """The default version cannot be unregistered while other versions are registered."""

    status = 403
    kind = "InvalidModelVersionException"

    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot remove default version for model {name}")


class Conflict(DaemonError):
    """The same model and version are registered already."""

    status = 409
    kind = "ConflictStatusException"

    def __init__(self, name: str, version: str, message: str = "") -> None:
        super().__init__(message or f"Model version {version} is already registered for model {name}")
        self.name = name
        self.version = version


class BeingReplaced(Conflict):
    """The version is being replaced by another archive; further changes are rejected until then."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            name,
            version,
            f"Model version {version} of model {name} is being replaced."
            f" Try again after the replacement: `tsctl describe {name}/{version}` shows its progress.",
        )


class NotFailed(DaemonError):
    """Only failed versions can be retried.

    Args:
        state: the version's present state, in a word.
        given_up: how many of the `wanted` worker slots are permanently empty.
    """

    status = 409
    kind = "ConflictStatusException"

    def __init__(self, name: str, version: str, state: str, given_up: int, wanted: int) -> None:
        sentence = f"Model version {version} of model {name} has not failed (state: {state}); nothing to retry."
        if given_up:
            sentence += f" {given_up} of {wanted} workers failed:"
            sentence += f" `tsctl scale {name}/{version} {wanted}` starts them again."
        super().__init__(sentence)


class NoReadyWorker(DaemonError):
    """No worker can take the request, now or soon."""

    status = 503
    kind = "ServiceUnavailableException"


class Loading(NoReadyWorker):
    """The first worker is still loading the model."""

    retry_after = 1


class LoadingFirst(Loading):
    """The first worker of the version is loading: the request waits, unread, as long as it may.

    Args:
        most: seconds that the model's settings allow; inf for no limit.
        listeners: of the version; called when its workers have changed.
    """

    def __init__(self, name: str, most: float, listeners: dict[Callable[[], None], None]) -> None:
        super().__init__(f'Model "{name}" is still loading: no worker is ready yet. Try again later.')
        self.name = name
        self.most = most
        self.listeners = listeners


class Stopping(DaemonError):
    """The daemon or the model version is being shut down."""

    status = 503
    kind = "ServiceUnavailableException"


class Upgrading(DaemonError):
    """Changes are rejected while the daemon is being upgraded."""

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 5
    sentence = "The daemon is being upgraded and rejects changes meanwhile. Try again later."


class CutOff(Stopping):
    """The worker of the request was stopped before the answer: its model or the daemon had to end."""

    def __init__(self, reason: str, request: str) -> None:
        super().__init__(f"The worker was stopped while it ran this request: {reason}. (Request {request})")


class QueueFull(LimitReached):
    """The version's queue is at its limit, in jobs or in bytes."""


class PredictionFailed(DaemonError):
    """The handler failed for this request."""

    status = 503


class WorkerDied(DaemonError):
    """The worker exited while running the request, which is not retried."""


class WorkerKilled(WorkerDied):
    """A SIGKILL not sent by the daemon ended the worker: most likely the kernel's, out of memory."""

    status = 507


class ResponseTimeout(DaemonError):
    """The worker took longer than the response timeout and is replaced."""


class RequestExpired(DaemonError):
    """The request's deadline has passed. (TorchServe has this name, and leaves expired requests unanswered.)"""

    status = 504
    kind = "RequestTimeoutException"


class ReceivedTooSlowly(RequestExpired):
    """The deadline passed before the body had arrived.

    Args:
        limit: seconds that the request may take; `source` is the header or setting that sets the limit.
    """

    def __init__(self, limit: float, source: str) -> None:
        super().__init__(
            f"The body did not arrive in the {duration(limit)} that {source} allows for the request."
            " Allow more time, or send less."
        )


class WaitedTooLong(RequestExpired):
    """The request was not run: its answer would be too late, or the queue timeout passed.

    Args:
        limit: seconds that the request may take, or wait.
        source: the header or setting that sets `limit`.
        spent: how the time was spent, in words.
        needed: seconds that the model would still need of `limit`; 0.0 if unknown or irrelevant.
    """

    def __init__(self, limit: float, source: str, spent: str, needed: float = 0.0) -> None:
        needs = f", and the model takes about {duration(needed)}" if needed else ""
        super().__init__(
            f"The request was not run: of the {duration(limit)} that {source} allows, {spent}{needs}."
            " Allow more time, or add workers."
        )


class AnsweredTooLate(RequestExpired):
    """The deadline passed while a worker ran the request. Arguments as of WaitedTooLong."""

    def __init__(self, limit: float, source: str, spent: str) -> None:
        super().__init__(
            f"The model did not answer in time: of the {duration(limit)} that {source} allows, {spent}."
            " Its answer will be dropped. Allow more time."
        )


class WorkersFailed(DaemonError):
    """No worker could load the model."""


class NotRemembered(DaemonError):
    """A change was applied, but the snapshot could not be written."""

    def __init__(self, file: Path, reason: str) -> None:
        self.reason = f"cannot write `{file}`: {reason}"
        remedy = "The next change that can be saved saves this one, too."
        lost = "Change applied, but it could not be saved and will be lost on restart"
        super().__init__(f"{lost}: {self.reason}. {remedy}")


class UpgradeFailed(DaemonError):
    """The upgrade failed; the old daemon keeps serving.

    Args:
        reason: one sentence.
        details: further lines, such as the traceback of a handler.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(f"Upgrade failed; the running daemon stays: {reason}" + (details and f"\n\n{details}"))


class CleaningTimedOut(DaemonError):
    """A worker of the unregistered version still exists after SIGKILL."""

    status = 408
    kind = "RequestTimeoutException"

    def __init__(self, name: str) -> None:
        super().__init__(f"Timed out while cleaning resources: {name}")


class OutOfResources(DaemonError):
    """Memory ran out while the model was loading."""

    status = 507


class StartError(Exception):
    """The daemon cannot start.

    Args:
        message: the problem, with the value.
        hint: the remedy; empty without one.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
