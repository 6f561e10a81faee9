"""A handler with type hints, from a real client to a real worker and back."""

import io

import pytest
from PIL import Image

from tests.e2e.served import Served

pytestmark = pytest.mark.thin


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 4)).save(buffer, "PNG")
    return buffer.getvalue()


def form(**parts: bytes) -> bytes:
    pieces = [
        b'--cut\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value)
        for name, value in parts.items()
    ]
    return b"".join(pieces) + b"--cut--\r\n"


@pytest.fixture(scope="module")
def shrinking(shared: Served) -> Served:
    shared.register("shrinks")
    return shared


def test_a_client_sends_what_the_hints_say_and_reads_what_the_function_returns(shrinking: Served) -> None:
    multipart = {"Content_Type": "multipart/form-data; boundary=cut"}

    sized = shrinking.ask("/predictions/shrinks", form(image=png()), **multipart)
    shrunk = shrinking.ask("/predictions/shrinks", form(image=png(), box=b'{"width":4}'), **multipart)
    wrong = shrinking.ask("/predictions/shrinks", form(image=png(), box=b'{"width":0}'), **multipart)
    damaged = shrinking.ask("/predictions/shrinks", form(image=b"x"), **multipart)

    assert (sized.status, sized.body) == (200, b'{"width":8,"height":4}')
    assert shrunk.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(shrunk.body)) as image:
        assert image.size == (4, 2)
    assert wrong.status == damaged.status == 400
    assert b"`box`: Expected `int` >= 1 - at `$.width`" in wrong.body
    assert b"`image`: The request's 1 bytes are not an image" in damaged.body
