"""What Triton is sent, and how its answers are read."""

import json
from pathlib import Path

import pytest

from tests.lab.benchmarks.peers.triton import answer_in, write_bytes


def test_a_body_is_a_binary_tensor_of_one_string(tmp_path: Path) -> None:
    headers = write_bytes(b"\x00body", tmp_path / "request")

    sent = (tmp_path / "request").read_bytes()
    size = int(headers["Inference-Header-Content-Length"])
    (tensor,) = json.loads(sent[:size])["inputs"]
    assert sent[size:] == b"\x05\x00\x00\x00\x00body"
    assert (tensor["datatype"], tensor["shape"], tensor["parameters"]) == ("BYTES", [1, 1], {"binary_data_size": 9})


def test_the_answer_is_the_only_string_of_the_output() -> None:
    assert answer_in(b'{"outputs": [{"name": "ANSWER", "datatype": "BYTES", "data": ["100"]}]}') == b"100"


@pytest.mark.parametrize("document", [b"", b"{}", b'{"outputs": []}'])
def test_another_document_has_no_answer(document: bytes) -> None:
    with pytest.raises((ValueError, LookupError)):
        answer_in(document)
