"""Whatever a handler does, each row gets one answer."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.device import GPU_ID
from tests.handlers.samples import context_of, row, write
from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import LONGEST_MESSAGE, LONGEST_TRACEBACK
from tsctl.handlers.runtime.runtime import Runtime, read_model_config
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable, PredictionException, UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint

IDS = ("r0", "r1", "r2")


def run(handle: Callable[[Any, Context], Any], rows: Sequence[wire.Row] | None = None) -> list[wire.Answer]:
    """Run a batch, by default of three empty rows, through a handler that is a function."""
    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")))
    return runtime.run(rows or [row(b"", request_id=each) for each in IDS])


def raising(error: BaseException) -> Callable[[Any, Context], Any]:
    def handle(data: Any, context: Context) -> Any:
        raise error

    return handle


def texts(answers: Sequence[wire.Answer]) -> list[tuple[int, str]]:
    return [(answer.status, answer.body.decode()) for answer in answers]


class Unprintable(Exception):
    def __str__(self) -> str:
        return ""


def test_answers_are_in_the_order_of_the_rows() -> None:
    answers = run(lambda data, context: [context.get_request_id(idx) for idx in range(len(data))])

    assert texts(answers) == [(200, "r0"), (200, "r1"), (200, "r2")]


def test_each_row_keeps_its_own_headers_and_status() -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        context.set_response_status(429, "Later", idx=1)
        context.set_response_header(2, "X-Row", "2")
        return [context.get_request_header(idx, "X-Name") for idx in range(len(data))]

    answers = run(handle, [wire.Row(name, [("X-Name", name)], []) for name in "abc"])

    assert [(each.status, each.phrase, each.headers) for each in answers] == [
        (200, "", []),
        (429, "Later", []),
        (200, "", [("X-Row", "2")]),
    ]
    assert [each.body for each in answers] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        pytest.param(ValueError("too long"), 503, "Prediction failed: ValueError: too long", id="an exception"),
        pytest.param(Unprintable(), 503, "Prediction failed: Unprintable", id="one without a message"),
        pytest.param(SystemExit(3), 503, "Prediction failed: SystemExit: 3", id="SystemExit"),
        pytest.param(
            MemoryError("no room"), 507, "Out of resources. MemoryError: no room", id="no memory is out of resources"
        ),
        pytest.param(
            RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
            507,
            "Out of resources. RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
            id="nor is an allocation of cuDNN's",
        ),
        pytest.param(
            RuntimeError("CUDA error: x"), 507, "Out of resources. RuntimeError: CUDA error: x", id="CUDA is, too"
        ),
    ],
)
def test_what_the_handler_raises_is_told_to_every_row(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = run(raising(error))

    assert texts(answers) == [(status, f"{message} (Request {each})") for each in IDS]
    assert {answer.error for answer in answers} == {"InternalServerException"}
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "status"), [(400, 400), (503, 503), (None, 500), (17, 500), ("x", 500)], ids=lambda value: str(value)
)
def test_a_prediction_exception_chooses_status_and_message(code: Any, status: int) -> None:
    error = PredictionException("not this one") if code is None else PredictionException("not this one", code)

    answers = run(raising(error))

    assert texts(answers) == [(status, "not this one")] * 3


LONG = "x" * 10_000_000


@pytest.mark.parametrize(
    "error",
    [
        ValueError(LONG),
        MemoryError(LONG),
        PredictionException(LONG, 418),
        UnreadablePayload(LONG),
        InvalidResult(LONG),
        NotSerialisable(LONG),
        ExceptionGroup("many", [ValueError(LONG)] * 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_exception_is_cut(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in run(raising(error), [row(b"", request_id="r0")]):
        text = answer.body.decode()
        assert len(text) < 2 * LONGEST_MESSAGE
        if not isinstance(error, ExceptionGroup):
            assert "x… (9990000 characters more)" in text
        if not isinstance(error, PredictionException):
            assert text.endswith("(Request r0)")

    assert len(capsys.readouterr().err) < 2 * LONGEST_TRACEBACK


def test_the_text_of_an_item_that_is_an_exception_is_cut() -> None:
    answers = run(lambda data, context: [ValueError(LONG), "well", "well"])

    assert [len(answer.body) < 2 * LONGEST_MESSAGE for answer in answers] == [True] * 3


def test_a_handler_may_say_itself_that_a_payload_is_unreadable() -> None:
    answers = run(raising(UnreadablePayload("no sound")))

    assert texts(answers) == [(400, f"no sound (Request {each})") for each in IDS]
    assert {answer.error for answer in answers} == {"BadRequestException"}


@pytest.mark.parametrize(
    ("items", "type_name"), [(None, "NoneType"), ({"a": 1}, "dict"), (("a", "b", "c"), "tuple"), ("abc", "str")]
)
def test_a_return_value_that_is_no_list_is_named(items: object, type_name: str) -> None:
    answers = run(lambda data, context: items)

    what = f"the handler returned {type_name}, and should return a list of 3"
    assert texts(answers) == [(503, f"Invalid model predict output: {what}. (Request {each})") for each in IDS]


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_list_of_the_wrong_length_names_the_expected_number(count: int) -> None:
    answers = run(lambda data, context: ["x"] * count)

    what = f"expected 3, the handler returned {count}"
    assert texts(answers) == [(503, f"number of batch response mismatched: {what}. (Request {each})") for each in IDS]


def test_an_item_that_cannot_be_sent_fails_its_own_row_only() -> None:
    answers = run(lambda data, context: ["fine", object(), "fine"])

    assert [answer.status for answer in answers] == [200, 503, 200]
    assert answers[1].body.startswith(b"Unsupported model output data type. Object of type object")
    assert answers[1].body.endswith(b"(Request r1)")


def test_a_body_that_breaks_the_json_parser_fails_nobody() -> None:
    rows = [row(b"[" * 100_000, "application/json"), row(b"[1]", "application/json", request_id="r1")]

    answers = run(lambda data, context: [type(each["body"]).__name__ for each in data], rows)

    assert texts(answers) == [(200, "bytearray"), (200, "list")]


def test_the_next_batch_is_not_touched_by_the_last() -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        if "fail" in data[0]:
            raise ValueError("as told")
        return [len(context.request_ids)]

    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")))
    failed = runtime.run([row(b"", name="fail"), row(b"")])

    answered = runtime.run([row(b"")])

    assert [answer.status for answer in failed] == [503, 503]
    assert texts(answered) == [(200, "1")]


@pytest.mark.parametrize(
    ("source", "own"),
    [
        pytest.param("class H(BaseHandler): ...", False, id="a subclass without a handle"),
        pytest.param("class H(BaseHandler):\n        def handle(self, data, context): ...", True, id="with one"),
        pytest.param("def handle(data, context): ...", True, id="a function"),
    ],
)
def test_it_knows_whether_the_handler_brings_its_own_handle(model_dir: Path, source: str, own: bool) -> None:
    write(model_dir / "net.py", "    import torch\n    class Net(torch.nn.Module): ...\n")
    write(model_dir / "mine.py", f"    from tsctl.handlers.builtin.base import BaseHandler\n    {source}\n")
    manifest = {"model": {"modelFile": "net.py"}}

    load = wire.Load("net", "1.0", str(model_dir), "mine.py", manifest, batch_size=1, threads=1, gpu_id=GPU_ID)
    runtime = Runtime.load(load)

    assert runtime.own_handle is own


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("handler:\n  top: 1\n", {"handler": {"top": 1}}, id="a mapping"),
        pytest.param("", {}, id="an empty file"),
        pytest.param("- a\n", {}, id="a list"),
        pytest.param(None, {}, id="no file named"),
    ],
)
def test_the_handler_sees_the_archives_yaml(tmp_path: Path, content: str | None, expected: dict[str, Any]) -> None:
    model: dict[str, Any] = {}
    if content is not None:
        (tmp_path / "model-config.yaml").write_text(content)
        model = {"configFile": "model-config.yaml"}

    config = read_model_config(wire.Load("net", "1.0", str(tmp_path), "h", {"model": model}, 1, 1))

    assert config == expected


@pytest.mark.parametrize(("text", "limited"), [(None, True), ("true", True), ("false", False)])
def test_whether_images_are_limited_is_the_operators_word(
    text: str | None, limited: bool, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    monkeypatch.setattr("tsctl.handlers.runtime.runtime.load_handler", lambda handler, directory, typed: Entry(seen))
    if text is not None:
        monkeypatch.setenv("TS_LIMIT_MAX_IMAGE_PIXELS", text)

    Runtime.load(wire.Load("m", "1.0", str(model_dir), "h", {}, 1, 1))

    assert seen == [limited]


class Entry(EntryPoint):
    """Notes what the context says of images."""

    def __init__(self, seen: list[bool]) -> None:
        super().__init__(None, lambda data, context: data)
        self._seen = seen

    def initialize(self, context: Context) -> None:
        self._seen.append(context.system_properties["limit_max_image_pixels"])
