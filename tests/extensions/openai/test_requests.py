"""What a handler finds of a request of OpenAI's API, and what is refused."""

import json
from itertools import pairwise

import pytest

from tests.kit.said import reason, said_in
from tsctl.daemon.api.json_text.syntax import WINDOW
from tsctl.daemon.core.arena import Lease, Place
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.openai.requests import Asked, read_request, read_steps


def asked(chat: bool = False, **members: object) -> Asked:
    return read_request(json.dumps({"model": "m", **members}).encode(), chat=chat)


def row(found: Asked) -> dict[str, object]:
    values = [bytes(param.value).decode() for param in found.params]
    return {
        param.name: value if param.content_type == "text/plain" else json.loads(value)
        for param, value in zip(found.params, values, strict=True)
    }


def test_each_member_is_a_part_of_the_row_and_the_prompt_is_its_data() -> None:
    found = asked(prompt="Once", max_tokens=5, stream=True, stop=["."])

    assert (found.model, found.version, found.stream) == ("m", None, True)
    assert row(found) == {
        "model": "m", "prompt": "Once", "max_tokens": 5, "stream": True, "stop": ["."], "data": "Once",
    }  # fmt: skip


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


def test_a_model_may_be_named_with_its_version() -> None:
    found = asked(model="m/2.0", prompt=["Once"])

    assert (found.model, found.version, row(found)["data"]) == ("m", "2.0", "Once")


def test_a_chat_is_a_transcript_for_handlers_without_a_template() -> None:
    parts = [{"type": "text", "text": "See "}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "this"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]

    found = asked(chat=True, messages=[*messages, {"role": "assistant", "content": None, "tool_calls": []}])

    assert row(found)["data"] == "system: Be brief.\nuser: See this\nassistant: \nassistant:"
    assert row(found)["messages"][0] == messages[0]  # type: ignore[index]


def test_no_member_takes_the_place_of_the_text() -> None:
    assert row(asked(prompt="Once", data="else"))["data"] == "Once"


@said_in("wrong.txt")
def test_what_is_wrong_is_named(given: str) -> str:
    return reason(lambda: read_request(given.encode(), chat=False), BadRequest)


@pytest.mark.parametrize("messages", [[], [{"content": "a"}], "a", [{"role": "user", "content": 3}]])
def test_messages_that_are_none_are_refused(messages: object) -> None:
    with pytest.raises(BadRequest, match="`messages` is"):
        asked(chat=True, messages=messages)
