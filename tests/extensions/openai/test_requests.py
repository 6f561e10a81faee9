"""What a handler finds of a request of OpenAI's API, and what is refused."""

import json
from itertools import pairwise

import pytest

from tests.kit.said import reason, said_in
from tsctl.daemon.core.arena import Lease, Place
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.json_text.syntax import WINDOW
from tsctl.daemon.extensions.openai.requests import read_request, read_steps


class Shared:
    """Memory for one place, whose free bytes are 0."""

    def __init__(self, length: int) -> None:
        self.view = memoryview(bytearray(length))

    def take(self, length: int) -> Lease:
        return Lease(Place(self, 0, length), 0, length)

    def free(self, offset: int, length: int, *, written: bool = True) -> None: ...


@pytest.mark.parametrize("chat", [False, True], ids=["a prompt", "a message"])
def test_a_long_text_is_copied_a_part_in_each_step_to_where_the_body_is(chat: bool) -> None:
    text = "ab\n" * 2 * WINDOW
    said = {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
    body = json.dumps({"model": "m", **said}).encode()
    shared = Shared(2 * len(body))
    shared.view[len(body) : 2 * len(body)] = body
    place = Place(shared, 0, 2 * len(body))
    steps = read_steps(Lease(place, len(body), len(body)), chat=chat)
    written, found = [0], None
    while found is None:
        try:
            next(steps)
        except StopIteration as done:
            found = done.value
        written.append(len(bytes(shared.view[: len(body)]).rstrip(b"\0")))

    assert max(after - before for before, after in pairwise(written)) <= 2 * WINDOW
    assert bytes(found.params[-1].value).decode() == (f"user: {text}\nassistant:" if chat else text)


@said_in("wrong.txt")
def test_what_is_wrong_is_named(given: str) -> str:
    return reason(lambda: read_request(given.encode(), chat=False), BadRequest)
