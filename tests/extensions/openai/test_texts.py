"""Long texts in JSON, read a window at a time, are what msgspec reads in one go."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extensions.json_text.test_json_text import FEW, WINDOW, written
from tsctl.daemon.core.arena import Gathered
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.openai import texts
from tsctl.daemon.extensions.openai.texts import gather_text


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "WINDOW", WINDOW)
        yield


@FEW
@given(st.text(max_size=60), st.booleans())
def test_a_text_is_read_as_it_is(value: str, ascii_only: bool) -> None:
    data = written(value, ascii_only=ascii_only, indent=None)

    gathered = Gathered(None, len(data))
    finish(gather_text(memoryview(data), gathered))

    assert gathered.payload() == value.encode()


NO_TEXTS = (b'"\xff"', rb'"\ud83c, half a character"', b'"' + b"a" * 40 + b'\xe2\x82"', b'"\xe2\x82', b"1", b"")


@pytest.mark.parametrize("data", NO_TEXTS)
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(BadRequest, match="The body is not JSON: "):
        finish(gather_text(memoryview(data), Gathered(None, len(data))))
