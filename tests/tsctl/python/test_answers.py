"""Answers become values by their content type, and a 503 tells when to come back."""

import io
import time
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest

from tsctl.python.answers import ReceivedAnswer, retry_after
from tsctl.python.errors import UnreadableAnswer
from tsctl.python.inputs import NPY


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def value_of(body: bytes) -> Any:
    return ReceivedAnswer(200, {"content-type": NPY}, body).value


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), np.int8)), np.float32(3), np.zeros((0, 4))],
    ids=["rows", "columns first", "a scalar", "empty"],
)
def test_an_npy_answer_is_an_array(array: Any) -> None:
    read = value_of(npy(array))

    assert read.dtype == np.asarray(array).dtype and read.shape == np.shape(array)
    assert read.tolist() == np.asarray(array).tolist() and read.flags.writeable


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no array", npy(np.ones(4))[:-1], npy(np.ones(4)) + b"x",
        npy(np.ones(4)).replace(b"(4,)", b"(9999999999999,)"), npy(np.array(["a"])).replace(b"<U1", b"|O8"),
    ],
    ids=["nothing", "text", "too short", "too long", "a shape beyond memory", "objects"],
)  # fmt: skip
def test_a_body_that_is_no_array_is_told_so(body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="npy"):
        value_of(body)


@pytest.mark.parametrize(
    ("status", "text", "seconds"),
    [
        (503, "3", 3.0), (503, "", None), (503, "soon", None), (503, "9" * 20, None), (503, "²", None),
        (500, "3", None),
        (503, formatdate(0, usegmt=True), 0.0), (503, "Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)  # fmt: skip
def test_seconds_to_wait(status: int, text: str, seconds: float | None) -> None:
    assert retry_after(status, {"retry-after": text}) == seconds


def test_a_date_to_wait_for() -> None:
    before = time.time()
    found = retry_after(503, {"retry-after": formatdate(before + 30, usegmt=True)})

    assert found is not None and 29 - (time.time() - before) <= found <= 30  # a date has whole seconds
