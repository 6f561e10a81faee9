"""Declared tensors over HTTP, through a real daemon and worker."""

import json
from typing import Any

import numpy as np
import pytest

from tests.e2e.served import Answer, Served
from tests.e2e.tensor_models import register
from tests.handlers.tensors.test_arrays import VALUES
from tsctl.daemon.core.arena import SHARED_FROM
from tsctl.daemon.model_settings.declarations import DATATYPES

pytestmark = pytest.mark.thin


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    served = Served(tmp_path_factory.mktemp("tensors"))
    served.start("--max-request-size", "4MiB")
    yield served
    served.stop()


def infer(served: Served, model: str, data: bytes, datatype: str, shape: list[int], **parameters: object) -> Answer:
    tensor = {"name": "x", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True, **parameters}}).encode()
    return served.ask(f"/v2/models/{model}/infer", head + data, Inference_Header_Content_Length=str(len(head)))


def sent_back(answer: Answer) -> tuple[bytes, bool]:
    """Return the elements of `x`, and whether all arrays that the handler keeps are as they were."""
    assert answer.status == 200, answer.body
    length = int(answer.headers["inference-header-content-length"])
    assert [each["name"] for each in json.loads(answer.body[:length])["outputs"]] == ["x", "intact"]
    return answer.body[length:-1], answer.body[-1] == 1


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_comes_back_bit_for_bit(tensors: Served, datatype: str) -> None:
    from tsctl.daemon.extensions.tensors.elements import pack

    model = register(tensors, datatype)
    texts = ["a", "é"] if datatype == "BYTES" else VALUES[datatype]
    data = pack(datatype, texts)

    assert sent_back(infer(tensors, model, data, datatype, [2])) == (data, True)

    tensor = {"name": "x", "datatype": datatype, "shape": [2], "data": texts}
    answer = tensors.ask(f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}).encode())
    assert answer.status == 200, answer.body
    assert pack(datatype, answer.json["outputs"][0]["data"]) == data


def test_arrays_that_a_handler_keeps_never_become_another_clients(tensors: Served) -> None:
    model = register(tensors, "INT32", "keeps")
    size = SHARED_FROM  # elements: far more bytes than are sent in a frame
    for number in range(1, 31):
        data = np.full(size, number, "<i4").tobytes()

        came, intact = sent_back(infer(tensors, model, data, "INT32", [size], keep=number % 3 == 0))

        assert came == data, number
        assert intact, number
    assert sent_back(infer(tensors, model, data, "INT32", [size], forget=True))[1]


def test_a_wrong_tensor_is_refused_and_the_next_one_served(tensors: Served) -> None:
    model = register(tensors, "FP32", "refuses")

    refused = infer(tensors, model, b"1234", "FP32", [1, 1])

    assert refused.status == 400
    assert refused.json["error"] == "Input x is FP32 of shape [1, 1]; the model takes FP32 of shape [-1]."
    assert sent_back(infer(tensors, model, b"1234", "FP32", [1])) == (b"1234", True)
