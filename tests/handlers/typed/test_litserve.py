"""A class in LitServe's form is called as LitServe calls it."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from tests.handlers.typed.calls import request, runtime_of
from tsctl.handlers.wire import Answer


class Lit:
    device = ""

    def setup(self, device: str) -> None:
        self.device = device

    def predict(self, value):  # type: ignore[no-untyped-def]  # as LitServe's examples are written
        return value**2

    def decode_request(self, request):  # type: ignore[no-untyped-def]
        return request["input"]

    def encode_response(self, output):  # type: ignore[no-untyped-def]
        return {"output": output}


def answer_of(api: Any, body: object = MappingProxyType({"input": 4})) -> tuple[Answer, list[bytes]]:
    runtime, pieces = runtime_of(api.predict, api), list[bytes]()
    row = request(("body", "application/json", json.dumps(dict(body) if isinstance(body, Mapping) else body).encode()))
    [answer] = runtime.run([row], lambda sent: pieces.extend(piece.body for _, piece in sent))
    return answer, pieces


def test_the_methods_are_called_one_after_the_other() -> None:
    api = Lit()

    answer, _ = answer_of(api)

    assert (answer.status, json.loads(answer.body)) == (200, {"output": 16})
    assert api.device.startswith(("cpu", "cuda:"))


def test_each_request_has_a_context_of_its_own() -> None:
    class Api(Lit):
        def decode_request(self, request, context):  # type: ignore[no-untyped-def, override]
            context["times"] = request["times"]
            return request["input"]

        def predict(self, value, context):  # type: ignore[no-untyped-def, override]
            return value * context.pop("times")

    assert answer_of(Api(), {"input": 4, "times": 3})[0].body == b'{"output":12}'


def test_coroutines_are_awaited_and_their_requests_wait_at_the_same_time() -> None:
    class Api(Lit):
        async def predict(self, value):  # type: ignore[no-untyped-def]
            return value + 1

    api = Api()

    assert answer_of(api)[0].body == b'{"output":5}'
    declared = runtime_of(api.predict, api).declared
    assert declared is not None and declared.waits


def test_a_generator_answers_in_pieces() -> None:
    class Api(Lit):
        def predict(self, value: int) -> Iterator[int]:
            yield from range(value)

        def encode_response(self, output: Iterator[int]) -> Iterator[str]:
            for each in output:
                yield f"<{each}>"

    assert answer_of(Api(), {"input": 2})[1] == [b"<0>", b"<1>"]


def test_so_does_an_asynchronous_one() -> None:
    class Api(Lit):
        async def predict(self, value: int) -> AsyncIterator[str]:
            for each in range(value):
                yield str(each)

        async def encode_response(self, output: AsyncIterator[str]) -> AsyncIterator[str]:
            async for each in output:
                yield f"<{each}>"

    assert answer_of(Api(), {"input": 2})[1] == [b"<0>", b"<1>"]


def test_the_hint_of_decode_request_says_what_a_request_holds() -> None:
    class Api(Lit):
        def decode_request(self, request: int) -> int:
            return request

    assert [answer_of(Api(), body)[0].status for body in (3, "x")] == [200, 400]


def test_a_device_is_given_to_any_class_that_asks_for_one_by_name() -> None:
    class Typed:
        device = ""

        def setup(self, device: str) -> None:
            self.device = device

        def predict(self, x: str) -> str:
            return self.device

    made = Typed()
    [answer] = runtime_of(made.predict, made).run([request(("body", "", b"x"))])

    assert answer.body.decode() == made.device != ""


@pytest.mark.parametrize("form", [Lit, type("Plain", (), {"setup": Lit.setup, "predict": Lit.predict})])
def test_without_a_method_of_its_own_a_class_needs_hints(form: type) -> None:
    made = form()
    if form is Lit:
        assert runtime_of(made.predict, made).declared is not None
    else:
        with pytest.raises(ValueError, match="`predict` needs a type hint for `value`"):
            runtime_of(made.predict, made)
