"""A handler with type hints, from a real client to a real worker and back."""

import base64
import gzip
import io
import json

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


def test_the_same_image_may_come_in_any_form_of_a_body(shrinking: Served) -> None:
    image, multipart = png(), "multipart/form-data; boundary=cut"
    in_json = json.dumps({"image": base64.b64encode(image).decode()}).encode()
    called_a_form = "application/x-www-form-urlencoded"  # by curl, whatever the body is

    answers = [
        shrinking.ask("/predictions/shrinks", image, Content_Type="image/png"),
        shrinking.ask("/predictions/shrinks", image, Content_Type=called_a_form),
        shrinking.ask("/predictions/shrinks", form(image=image), Content_Type=multipart),
        shrinking.ask("/predictions/shrinks", in_json, Content_Type="application/json"),
        shrinking.ask("/predictions/shrinks", in_json, Content_Type=called_a_form),
        shrinking.ask("/predictions/shrinks", gzip.compress(image), Content_Type="image/png", Content_Encoding="gzip"),
    ]
    shrunk = shrinking.ask("/predictions/shrinks?box=%7B%22width%22%3A4%7D", image, Content_Type="image/png")
    twice = form(image=image)[: -len(b"--cut--\r\n")] + form(image=png())
    refused = shrinking.ask("/predictions/shrinks", twice, Content_Type=multipart)

    assert [(each.status, each.body) for each in answers] == [(200, b'{"width":8,"height":4}')] * len(answers)
    assert shrunk.headers["content-type"] == "image/png"
    assert refused.status == 400 and b"`image`: the request has 2 parts of this name" in refused.body
