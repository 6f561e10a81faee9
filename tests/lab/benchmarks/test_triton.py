"""How the answers of Triton are read."""

import pytest

from tests.lab.benchmarks.peers.triton import element


def test_the_answer_is_the_only_element_behind_the_head() -> None:
    assert element(b'{"outputs": [{"name": "ANSWER"}]}\x03\x00\x00\x00100') == b"100"


@pytest.mark.parametrize("body", [b"", b"100", b"{"])
def test_another_body_has_no_answer(body: bytes) -> None:
    with pytest.raises(ValueError):
        element(body)
