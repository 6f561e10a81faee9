"""A TorchServe handler's tensor is what it always was, unless the client's `Accept` names another form."""

import io
import json
from typing import Any

import numpy as np
import pytest
import torch

from tests.handlers.device import DEVICE
from tsctl.handlers.requests.rows import JSON, NPY, encode_item
from tsctl.handlers.sdk.errors import NotSerialisable
from tsctl.handlers.sdk.request_processor import RequestProcessor

TENSOR = torch.tensor([[1.5, 2.0]], device=DEVICE)
ARRAY = np.array([[1.5, 2.0]])


@pytest.mark.parametrize("item", [TENSOR, ARRAY], ids=["a tensor", "an array"])
def test_accept_chooses_the_form_of(item: Any) -> None:
    as_file = encode_item(item, RequestProcessor({"Accept": NPY}))
    as_json = encode_item(item, RequestProcessor({"accept": f"{JSON}, {NPY};q=0.5"}))

    assert as_file.headers == [("Content-Type", NPY)]
    assert np.load(io.BytesIO(as_file.body), allow_pickle=False).tolist() == [[1.5, 2.0]]
    assert as_json.headers == [("Content-Type", JSON)]
    assert json.loads(as_json.body) == [[1.5, 2.0]]
    assert encode_item(np.array([np.nan, 1.0]), RequestProcessor({"Accept": JSON})).body == b"[null, 1.0]"
    document = encode_item({"a": 1}, RequestProcessor({"Accept": NPY}))
    assert (document.headers, json.loads(document.body)) == ([("Content-Type", JSON)], {"a": 1}), "no array"


def test_an_array_of_objects_is_never_pickled() -> None:
    with pytest.raises(NotSerialisable):
        encode_item(np.array([object()]), RequestProcessor({"Accept": NPY}))


@pytest.mark.parametrize("headers", [{}, {"Accept": "*/*"}, {"Accept": "text/html"}], ids=str)
def test_without_such_a_header_torchserves_forms_stay(headers: dict[str, str]) -> None:
    saved = encode_item(TENSOR, RequestProcessor(headers))

    assert torch.load(io.BytesIO(saved.body)).tolist() == [[1.5, 2.0]]
    assert saved.headers == []
    assert json.loads(encode_item(ARRAY, RequestProcessor(headers)).body) == [[1.5, 2.0]]
