"""Several batches at the same time: each stage takes its turns, each batch has its own context."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.device import on_device
from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.process.pipeline import STAGES, Pipeline, Ran, lanes_for, suits
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import HandlerError, UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.torchserve.micro_batching import MicroBatching

PATIENCE = 20.0  # seconds until a test that hangs fails; no test waits for it
CPU, GPU = torch.device("cpu"), torch.device("cuda:0")


class Tracing(BaseHandler):
    """Doubles numbers; notes who was in which stage, and on which thread."""

    def __init__(self) -> None:
        super().__init__()
        self.model = lambda numbers: numbers * 2
        self.seen: list[tuple[str, str | None, str]] = []
        self.gates: dict[tuple[str, str | None], threading.Event] = {}

    def note(self, stage: str) -> None:
        assert self.context is not None
        who = self.context.get_request_id(0)
        self.seen.append((stage, who, threading.current_thread().name.partition("_")[0]))
        gate = self.gates.get((stage, who))
        assert gate is None or gate.wait(PATIENCE)

    def preprocess(self, data: list[Any]) -> Any:
        self.note("preprocess")
        if [each["data"] for each in data] == [1.0, 99]:
            raise UnreadableRows({1: UnreadablePayload("not this one")})
        return super().preprocess(data)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        self.note("inference")
        if data[0] == 13:
            raise RuntimeError("unlucky")
        return super().inference(data)

    def postprocess(self, data: Any) -> list[Any]:
        self.note("postprocess")
        assert self.context is not None
        self.context.set_response_header(0, "X-Who", str(self.context.get_request_id(0)))
        return super().postprocess(data)

    def get_insights(self, tensor_data: torch.Tensor, raw_data: Any, target: Any = 0) -> list[Any]:
        return [self.inference(tensor_data).tolist()]


def row(name: str, value: bytes = b"1.0", **headers: str) -> wire.Row:
    return wire.Row(name, list(headers.items()), [("data", "application/json", value)])


class Run:
    """A pipeline and what came out of it."""

    def __init__(self, handler: BaseHandler, model_dir: Path, lanes: int = 2) -> None:
        self.handler = on_device(handler)
        self.runtime = Runtime(EntryPoint(handler, handler.handle), context_of(model_dir))
        self.pipeline = Pipeline(self.runtime, lanes)
        self.answers: list[list[wire.Answer]] = []

    def submit(self, *rows: wire.Row) -> None:
        self.pipeline.submit(rows, lambda ran: self.answers.append(ran.answers))

    @property
    def bodies(self) -> list[list[bytes]]:
        return [[answer.body for answer in batch] for batch in self.answers]


@pytest.fixture
def tracing() -> Tracing:
    return Tracing()


@pytest.fixture
def run(tracing: Tracing, tmp_path: Path) -> Iterator[Run]:
    run = Run(tracing, tmp_path)
    yield run
    for gate in tracing.gates.values():
        gate.set()


def test_each_stage_has_its_thread_and_each_batch_its_context(run: Run, tracing: Tracing) -> None:
    for number in range(12):
        run.submit(row(f"r{number}", str(number).encode()))
    run.pipeline.close()

    assert all(stage == thread for stage, _, thread in tracing.seen)
    assert len(tracing.seen) == 36
    answered = [next(value for name, value in batch[0].headers if name == "X-Who") for batch in run.answers]
    assert answered == [f"r{number}" for number in range(12)]


def test_batches_are_answered_in_the_order_they_came(run: Run, tracing: Tracing) -> None:
    gate = tracing.gates["inference", "slow"] = threading.Event()
    run.submit(row("slow"))
    run.submit(row("bad", b'"no number"'))  # it fails in its first stage
    assert run.pipeline._newest.inferred.wait(PATIENCE) and run.answers == []
    gate.set()
    run.submit(row("worse", b"13"))  # and this one in its second
    run.submit(row("last"))
    run.pipeline.close()

    assert [batch[0].status for batch in run.answers] == [200, 400, 503, 200]
    assert b"RuntimeError: unlucky" in run.answers[2][0].body


def test_no_batch_overtakes_another_in_any_stage(run: Run, tracing: Tracing) -> None:
    # Of a hundred, because two lanes that race come in this order by chance, too.
    names = [str(number) for number in range(100)]
    for name in names:
        run.submit(row(name))
    run.pipeline.close()

    for stage in ("preprocess", "inference", "postprocess"):
        assert [who for each, who, _ in tracing.seen if each == stage] == names


BATCHES = [
    pytest.param([row("a"), row("b", b"2.5")], id="predictions"),
    pytest.param([row("a"), row("b", b'"no number"'), row("c", b"3.0")], id="an unreadable row"),
    pytest.param([row("a", b"13")], id="a stage that fails"),
    pytest.param([row("a"), row("b", b"99")], id="a row that only `preprocess` finds unreadable"),
    pytest.param([row("a"), row("b", explain="True"), row("c", describe="True")], id="of several kinds"),
    pytest.param([row("a", explain="True")], id="an explanation"),
]


@pytest.mark.parametrize("rows", BATCHES)
def test_the_answers_are_those_of_a_worker_without_a_pipeline(run: Run, rows: list[wire.Row], tmp_path: Path) -> None:
    plain = on_device(Tracing())
    expected = Runtime(EntryPoint(plain, plain.handle), context_of(tmp_path)).run(rows)
    run.submit(*rows)
    run.pipeline.close()

    assert run.answers == [expected]


def test_an_explanation_puts_its_model_in_the_place_of_no_other_batchs(run: Run, tracing: Tracing) -> None:
    class Plain:
        def model(self) -> Any:
            return lambda numbers: numbers * 100

    tracing.plain = Plain()  # type: ignore[assignment]
    tracing.gates["inference", "a"] = explained = threading.Event()
    run.submit(row("a"))
    run.submit(row("b", b"2.0", explain="True"))
    explained.set()
    run.submit(row("c", b"3.0"))
    run.pipeline.close()

    assert run.bodies == [[b"2.0"], [b"[\n  200.0\n]"], [b"6.0"]]
    assert tracing.model(1) == 2


def test_no_more_batches_are_under_way_than_there_are_lanes(tracing: Tracing, tmp_path: Path) -> None:
    run = Run(tracing, tmp_path, lanes=2)
    gate = tracing.gates["inference", "a"] = threading.Event()
    run.submit(row("a"))
    run.submit(row("b"))
    third = threading.Thread(target=run.submit, args=(row("c"),))
    third.start()

    assert "c" not in {who for _, who, _ in tracing.seen}
    gate.set()
    third.join(PATIENCE)
    run.pipeline.close()
    assert len(run.answers) == 3


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param((3, 3, 1), id="reading takes as long as inferring"),
        pytest.param((1, 5, 1), id="the GPU is the slowest"),
        pytest.param((5, 3, 0), id="reading is"),
    ],
)
def test_on_a_gpu_there_are_lanes_enough_for_the_slowest_stage_to_rest_never(stages: tuple[int, int, int]) -> None:
    assert lanes_for("cuda") / sum(stages) >= 1 / max(stages)
    assert lanes_for("cpu") == 2, "a batch more would only wait"


def test_what_done_raises_comes_out(run: Run) -> None:
    def gone(ran: Ran) -> None:
        raise BrokenPipeError("the daemon has gone")

    run.pipeline.submit([row("a")], gone)

    with pytest.raises(BrokenPipeError):
        run.pipeline.close()


def test_the_stages_are_the_handlers_own_again_when_it_is_closed(run: Run, tracing: Tracing) -> None:
    run.pipeline.close()

    assert not vars(tracing).keys() & set(STAGES)


@pytest.mark.parametrize(
    ("device", "count", "shares"),
    [
        pytest.param(CPU, 4, (1, 3, 1), id="reading takes its thread from inference"),
        pytest.param(CPU, 1, (1, 1, 1), id="if that has two"),
        pytest.param(GPU, 4, (4, 1, 1), id="where a GPU infers, reading has all of them"),
    ],
)
def test_the_threads_are_divided(
    device: torch.device, count: int, shares: tuple[int, int, int], tracing: Tracing, tmp_path: Path
) -> None:
    tracing.device = device
    given: list[tuple[str, int]] = []
    pipeline = Pipeline(
        Runtime(EntryPoint(tracing, tracing.handle), context_of(tmp_path)),
        set_threads=lambda count: given.append((threading.current_thread().name.partition("_")[0], count)),
    )
    pipeline.set_threads(count)
    pipeline.close()

    assert given == list(zip(("preprocess", "inference", "postprocess"), shares, strict=True))


class Mine(ImageClassifier):
    """A user's own postprocess."""

    def postprocess(self, data: torch.Tensor) -> list[dict[str, float]]:
        return super().postprocess(data)


def on(device: torch.device, handler: BaseHandler) -> BaseHandler:
    handler.device = device
    return handler


@pytest.mark.parametrize(
    ("handler", "config", "expected"),
    [
        pytest.param(on(GPU, ImageClassifier()), {}, True, id="our stages, on a GPU"),
        pytest.param(on(CPU, ImageClassifier()), {}, False, id="not on a CPU, whose cores they would share"),
        pytest.param(on(GPU, Mine()), {}, False, id="nor a user's stages"),
        pytest.param(on(GPU, Mine()), {"pipeline": True}, True, id="unless the archive allows it"),
        pytest.param(on(CPU, ImageClassifier()), {"pipeline": True}, True, id="there, too"),
        pytest.param(on(GPU, ImageClassifier()), {"pipeline": False}, False, id="or forbids it"),
    ],
)
def test_who_suits(handler: BaseHandler, config: dict[str, Any], expected: bool) -> None:
    assert suits(handler, False, config) is expected


def test_a_handle_of_the_users_own_does_not_suit() -> None:
    micro = ImageClassifier()
    micro.handle = MicroBatching(micro)  # type: ignore[method-assign]

    assert not suits(object(), True, {})
    assert not suits(micro, False, {})
    with pytest.raises(HandlerError, match="`pipeline: true` needs a handler class whose `handle` is BaseHandler's"):
        suits(object(), True, {"pipeline": True})


@pytest.mark.parametrize("value", ["yes", 1.5, [True]])
def test_pipeline_is_true_or_false(value: object) -> None:
    with pytest.raises(HandlerError, match=r"`pipeline` is .*; expected true or false"):
        suits(ImageClassifier(), False, {"pipeline": value})
