"""Each of the instances of a request of KServe's first protocol is a request of its own for a typed function."""

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from tests.handlers.typed.calls import ask, request, runtime_of, told
from tsctl.handlers import wire
from tsctl.handlers.sdk.context import Context

CALLS: list[int] = []


def png(width: int) -> str:
    file = io.BytesIO()
    Image.new("RGB", (width, 2)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def instances(*values: Any, number: int = 0, more: tuple[tuple[str, str, bytes], ...] = ()) -> wire.Row:
    body = json.dumps({"instances": values}).encode()
    return request((wire.INSTANCES, "application/json", body), *more, number=number)


def batch(texts: list[str]) -> list[int]:
    CALLS.append(len(texts))
    return [len(each) for each in texts]


def single(text: str, n: int = 1) -> str:
    return text * n


async def later(text: str) -> str:
    return text.upper()


def record(x: dict[str, int]) -> int:
    return sum(x.values())


def image(image: Image.Image) -> int:
    return image.width


@pytest.mark.parametrize(
    ("function", "row", "expected"),
    [
        pytest.param(batch, instances("a", "bb"), [1, 2], id="a function of lists"),
        pytest.param(single, instances("a", "b"), ["a", "b"], id="a function of one value"),
        pytest.param(single, instances({"text": "a", "n": 2}, {"text": "b"}), ["aa", "b"], id="objects with members"),
        pytest.param(single, instances("a", more=(("n", "", b"3"),)), ["aaa"], id="a parameter of the query"),
        pytest.param(later, instances("a", "b"), ["A", "B"], id="coroutines"),
        pytest.param(record, instances({"x": 2}, {"y": 3}), [2, 3], id="an object is the value that takes objects"),
        pytest.param(image, instances(png(3), {"b64": png(4)}, {"image": {"b64": png(5)}}), [3, 4, 5], id="images"),
        pytest.param(single, instances(), [], id="none"),
    ],
)
def test_each_instance_is_a_row_of_the_function(function: Callable[..., Any], row: wire.Row, expected: Any) -> None:
    [answer] = ask(function, row)

    assert (answer.status, json.loads(answer.body)) == (200, {"predictions": expected})


def test_all_instances_of_a_batch_and_its_other_requests_are_one_call() -> None:
    CALLS.clear()
    other = request(("body", "text/plain", b"four"), number=1)

    answers = ask(batch, instances("a", "bb"), other, instances("ccc", number=2))

    assert [each.body for each in answers] == [b'{"predictions":[1,2]}', b"4", b'{"predictions":[3]}']
    assert CALLS == [4]


def test_the_context_of_an_instance_is_its_requests() -> None:
    def predict(text: str, context: Context) -> str:
        return f"{text} {context.get_request_id(0)}"

    assert told(ask(predict, instances("a", number=0), instances("b", "c", number=1))) == [
        (200, '{"predictions":["a r0"]}'),
        (200, '{"predictions":["b r1","c r1"]}'),
    ]


TAKES = "is no part that the handler takes; those are `text`, `n`"


def stream(text: str) -> Any:
    yield text


@pytest.mark.parametrize(
    ("function", "row", "reason"),
    [
        (batch, instances("a", 3), "instance 2: `texts`: expected a text, got int"),
        (single, instances({"n": 3}), "instance 1: `text` is missing: an instance is an object with `text`, `n`"),
        (batch, request((wire.INSTANCES, "", b'{"instances": 3}')), "`instances`: expected a list, got int"),
        (single, instances({"text": "a", "N": 3}), f"instance 1: `N` {TAKES}; did you mean `n`?"),
        (single, instances("a", more=(("m", "", b"3"),)), f"`m` {TAKES}"),
        (
            single, instances({"text": "a", "n": 3}, more=(("n", "", b"3"),)),
            "instance 1: `n` is in the query and in the instance; send one of the two",
        ),
        (
            single, instances("a", more=(("text", "", b"b"), ("n", "", b"3"))),
            "instance 1: the instance is for none of the parameters: send an object with `text`, `n`",
        ),
        (
            single, request((wire.INSTANCES, "", b'{"instances": ["a"], "parameters": {"n": 3}}')),
            "`parameters`: a request with `instances` has no other member; what is for all of them may be in the query",
        ),
        (stream, instances("a"), "`instances`: the handler answers in pieces, which this protocol has not"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_instance_is_told(function: Callable[..., Any], row: wire.Row, reason: str) -> None:
    assert told(ask(function, row)) == [(400, f"{reason} (Request r0)")]


def test_a_body_without_instances_is_as_on_any_other_route() -> None:
    assert told(ask(batch, request((wire.INSTANCES, "", b"{a")))) == [(200, "2")]
    assert told(ask(single, request((wire.INSTANCES, "application/json", b'{"text": "a", "n": 2}')))) == [(200, "aa")]


def test_an_exception_of_one_instance_is_the_requests() -> None:
    def predict(text: str) -> str:
        if text == "b":
            raise ValueError("no b")
        return text

    answers = runtime_of(predict).run([instances("a", "b"), instances("c", number=1)])

    assert [each.status for each in answers] == [503, 200]
    assert answers[1].body == b'{"predictions":["c"]}'
