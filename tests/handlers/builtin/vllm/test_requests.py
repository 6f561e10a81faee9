"""Requests of OpenAI's API in the words of vLLM."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tsctl.handlers.builtin.vllm.handler import engine_arguments, logprobs_of, request_of, sampling_of
from tsctl.handlers.sdk.errors import HandlerError, PredictionException


def test_a_request_is_the_row_or_the_json_of_its_body() -> None:
    asked = {"model": "m", "prompt": "Once"}

    assert request_of({**asked, "data": "Once"}) == asked
    assert request_of({"body": asked}) == request_of({"data": asked}) == asked


@pytest.mark.parametrize("row", [{"body": bytearray(b"text")}, {"body": [1]}, {}])
def test_a_body_that_is_no_object_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(PredictionException, match="no JSON object") as caught:
        request_of(row)
    assert caught.value.error_code == 400


@pytest.mark.parametrize(
    ("request_", "chat", "sampling"),
    [
        ({"max_tokens": 3, "stop": ["."], "user": "me"}, False, {"max_tokens": 3, "stop": ["."]}),
        ({"max_completion_tokens": 3, "temperature": 0}, True, {"max_tokens": 3, "temperature": 0}),
        ({"n": 1, "echo": False, "logprobs": 2, "top_p": None}, False, {"logprobs": 2}),
    ],
)
def test_the_members_that_vllm_knows_are_its_parameters(
    request_: dict[str, Any], chat: bool, sampling: dict[str, Any]
) -> None:
    assert sampling_of(request_, chat=chat) == sampling


@pytest.mark.parametrize(
    ("request_", "chat"),
    [({"n": 2}, False), ({"echo": True}, False), ({"tools": [{}]}, True), ({"logprobs": True}, True)],
)
def test_what_is_not_supported_is_refused_by_name(request_: dict[str, Any], chat: bool) -> None:
    with pytest.raises(PredictionException, match=f"`{next(iter(request_))}` ") as caught:
        sampling_of(request_, chat=chat)
    assert caught.value.error_code == 400


def test_logprobs_tell_where_each_token_begins() -> None:
    found: list[Mapping[int, Any]] = [
        {7: SimpleNamespace(logprob=-0.5, decoded_token="On")},
        {8: SimpleNamespace(logprob=-1.0, decoded_token="ce")},
    ]

    assert logprobs_of([7, 8], found, 3) == {
        "tokens": ["On", "ce"], "token_logprobs": [-0.5, -1.0], "top_logprobs": [{"On": -0.5}, {"ce": -1.0}],
        "text_offset": [3, 5],
    }  # fmt: skip
    assert logprobs_of([7], None) is None


def test_a_model_in_the_archive_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()

    assert engine_arguments({"model_path": "weights"}, tmp_path) == {"model": str(tmp_path / "weights")}
    assert engine_arguments({"model_path": "org/name"}, tmp_path) == {"model": "org/name"}
    named = {"vllm_engine_config": {"model": "org/name", "max_num_seqs": 4}, "model_path": "weights"}
    assert engine_arguments(named, tmp_path) == {"model": "org/name", "max_num_seqs": 4}
    with pytest.raises(HandlerError, match="name the model"):
        engine_arguments({}, tmp_path)
