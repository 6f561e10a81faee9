"""The gRPC code of each error."""

from collections.abc import Iterator

import pytest

import tsctl.daemon.server.daemon  # noqa: F401 (imports every module of the daemon that declares an error)
from tsctl.daemon.core import errors
from tsctl.daemon.extensions.grpc.codes import BY_STATUS, Code, code_of, code_of_status


def subclasses_of(base: type[errors.DaemonError]) -> Iterator[type[errors.DaemonError]]:
    for each in base.__subclasses__():
        yield each
        yield from subclasses_of(each)


ERRORS = sorted(set(subclasses_of(errors.DaemonError)), key=lambda each: each.__qualname__)


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: each.__name__)
def test_every_error_of_the_daemon_has_a_status_with_a_code(error: type[errors.DaemonError]) -> None:
    assert error.status in BY_STATUS


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ModelNotFound("m"), Code.NOT_FOUND),
        (errors.VersionNotFound("m", "1.0"), Code.NOT_FOUND),
        (errors.BadRequest("bad"), Code.INVALID_ARGUMENT),
        (errors.MethodNotAllowed(), Code.UNIMPLEMENTED),
        (errors.WrongToken(), Code.PERMISSION_DENIED),
        (errors.MissingToken(), Code.PERMISSION_DENIED),
        (errors.DefaultVersionKept("m"), Code.FAILED_PRECONDITION),
        (errors.Conflict("m", "1.0"), Code.ALREADY_EXISTS),
        (errors.BeingReplaced("m", "1.0"), Code.ABORTED),
        (errors.QueueFull("full"), Code.UNAVAILABLE),
        (errors.Stopping("stopping"), Code.UNAVAILABLE),
        (errors.Loading("loading"), Code.UNAVAILABLE),
        (errors.PredictionFailed("failed"), Code.INTERNAL),
        (errors.WorkerDied("died"), Code.INTERNAL),
        (errors.WorkerKilled("killed"), Code.INTERNAL),
        (errors.AnsweredTooLate(1.0, "the header", "all was used"), Code.DEADLINE_EXCEEDED),
        (errors.OutOfResources("memory"), Code.RESOURCE_EXHAUSTED),
        (ValueError("not the daemon's"), Code.INTERNAL),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else each.name,
)
def test_an_error_has_the_code_that_clients_act_on(error: Exception, code: Code) -> None:
    assert code_of(error) is code


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, Code.INVALID_ARGUMENT), (429, Code.RESOURCE_EXHAUSTED), (418, Code.INVALID_ARGUMENT), (599, Code.INTERNAL)],
)
def test_a_status_that_a_handler_chose_has_a_code(status: int, code: Code) -> None:
    assert code_of_status(status) is code
