"""A request against the tensors that its model declares; and when the last one was answered."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.tensors.declaration_check import check_request
from tsctl.daemon.extensions.tensors.forms import InferRequest, Tensor, WantedOutput
from tsctl.daemon.extensions.tensors.metadata import last_answered, statistics
from tsctl.daemon.model_settings.declarations import DeclaredTensor

INPUTS = (DeclaredTensor("a", "INT32", (-1, 2)), DeclaredTensor("b", "BYTES", (1,), optional=True))
OUTPUTS = (DeclaredTensor("o", "FP32", (1,)),)
A, B = Tensor("a", "INT32", (3, 2), bytes(24), {}), Tensor("b", "BYTES", (1,), bytes(4), {})


def request(*inputs: Tensor, outputs: tuple[str, ...] = ()) -> InferRequest:
    return InferRequest("", {}, list(inputs), [WantedOutput(each, False, {}) for each in outputs], False)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        pytest.param(request(), r"Input a is missing: the model takes it as INT32 of shape \[-1, 2\]", id="missing"),
        pytest.param(request(A, A._replace(name="c")), "Unknown input: c; the model takes a, b", id="unknown"),
        pytest.param(request(A._replace(datatype="INT64")), "Input a is INT64 of shape", id="another datatype"),
        pytest.param(request(A._replace(shape=(6,))), r"is INT32 of shape \[6\]; the model takes", id="another rank"),
        pytest.param(request(A._replace(shape=(2, 3))), r"is INT32 of shape \[2, 3\]", id="another fixed dimension"),
        pytest.param(request(A, outputs=("p",)), "Unknown output: p; the model returns o", id="unknown output"),
    ],
)
def test_what_contradicts_the_declaration_is_refused(wrong: InferRequest, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        check_request(wrong, INPUTS, OUTPUTS)


def test_the_last_inference_is_told_in_milliseconds_since_1970() -> None:
    version = StubVersion()
    version.metrics.returned_at = 5.0

    told = statistics(version.model, last_answered(version.metrics, now=8.0, today=1000.0))

    assert told["last_inference"] == 997_000
