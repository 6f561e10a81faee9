"""Batches in small pieces, stage after stage, in threads."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.torchserve.micro_batching import MicroBatching


class Stages:
    """A handler whose stages note what they are given, and in which thread."""

    def __init__(self) -> None:
        self.seen: dict[str, list[list[Any]]] = {"preprocess": [], "inference": [], "postprocess": []}
        self.threads: set[str] = set()
        self.context: Any = None

    def note(self, stage: str, data: list[Any]) -> list[Any]:
        self.seen[stage].append(data)
        self.threads.add(threading.current_thread().name.partition("_")[0])
        return [f"{each}{stage[0]}" for each in data]

    def preprocess(self, data: list[Any]) -> list[Any]:
        return self.note("preprocess", data)

    def inference(self, data: list[Any]) -> list[Any]:
        return self.note("inference", data)

    def postprocess(self, data: list[Any]) -> list[Any]:
        return self.note("postprocess", data)


class Micro(BaseHandler):
    """As TorchServe's example has it: a handler that puts MicroBatching in the place of its `handle`."""

    def __init__(self) -> None:
        super().__init__()
        self.model = lambda numbers: numbers * 2
        self.micro = MicroBatching(self, micro_batch_size=2)
        self.handle = self.micro  # type: ignore[method-assign]

    def get_insights(self, tensor_data: Any, raw_data: Any, target: Any = 0) -> list[Any]:
        return [f"explained {raw_data}"]


@pytest.fixture
def stages() -> Stages:
    return Stages()


@pytest.fixture
def micro(stages: Stages) -> Iterator[MicroBatching]:
    micro = MicroBatching(stages, micro_batch_size=2)
    yield micro
    micro.shutdown()


@pytest.fixture
def handler() -> Iterator[Micro]:
    handler = Micro()
    yield handler
    handler.micro.shutdown()


def test_a_batch_goes_through_the_stages_in_pieces_and_comes_back_in_order(
    micro: MicroBatching, stages: Stages
) -> None:
    items = micro.handle([1, 2, 3, 4, 5])

    assert items == ["1pip", "2pip", "3pip", "4pip", "5pip"]
    assert stages.seen["preprocess"] == [[1, 2], [3, 4], [5]]
    assert stages.seen["postprocess"] == [["1pi", "2pi"], ["3pi", "4pi"], ["5pi"]]
    assert stages.threads == {"preprocess", "inference", "postprocess"}


def test_a_stage_knows_the_number_of_its_micro_batch(micro: MicroBatching, stages: Stages) -> None:
    stages.inference = lambda data: [f"{micro.get_micro_batch_idx()} {each}" for each in data]  # type: ignore[method-assign]

    assert micro.handle([1, 2, 3]) == ["0 1pp", "0 2pp", "1 3pp"]
    assert micro.get_micro_batch_idx() is None


def test_the_stages_run_at_the_same_time(micro: MicroBatching, stages: Stages) -> None:
    second_read, first_inferred = threading.Event(), []

    def preprocess(data: list[Any]) -> list[Any]:
        if data == [2]:
            second_read.set()
        return data

    def inference(data: list[Any]) -> list[Any]:
        first_inferred.append(second_read.wait(10))  # ends only because the second piece is read meanwhile
        return data

    stages.preprocess, stages.inference = preprocess, inference  # type: ignore[method-assign]
    micro.micro_batch_size = 1

    micro.handle([1, 2])

    assert first_inferred == [True, True]


def test_several_threads_may_work_on_one_stage(micro: MicroBatching, stages: Stages) -> None:
    together = threading.Barrier(3, timeout=10)

    def inference(data: list[Any]) -> list[Any]:
        together.wait()  # ends only when three are here
        return data

    stages.inference = inference  # type: ignore[method-assign]
    micro.parallelism = {"inference": 3}

    expected = [f"{number}pp" for number in range(1, 7)]
    assert micro.handle([1, 2, 3, 4, 5, 6]) == expected
    assert micro.parallelism == {"preprocess": 1, "inference": 3, "postprocess": 1}
    micro.parallelism = {"inference": 3, "preprocess": 2, "postprocess": 2}  # it may change between batches
    assert micro.handle([1, 2, 3, 4, 5, 6]) == expected


@pytest.mark.parametrize(
    ("parallelism", "sentence"),
    [
        ({"predict": 1}, "`predict` is not a stage of a handler"),
        ({"inference": 0}, "`inference` needs one thread or more, not 0"),
        ({"inference": "2"}, "`inference` needs one thread or more, not '2'"),
    ],
)
def test_threads_that_make_no_sense_are_refused(micro: MicroBatching, parallelism: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        micro.parallelism = parallelism


def test_what_a_stage_raises_is_raised_and_the_next_batch_runs(micro: MicroBatching, stages: Stages) -> None:
    def inference(data: list[Any]) -> list[Any]:
        if "3p" in data:
            raise KeyError("three")
        return data

    stages.inference = inference  # type: ignore[method-assign]

    with pytest.raises(KeyError, match="three"):
        micro.handle([1, 2, 3])
    assert micro.handle([1, 2]) == ["1pp", "2pp"]


def test_a_stage_that_loses_rows_is_found_out(micro: MicroBatching, stages: Stages) -> None:
    stages.postprocess = lambda data: data[:1]  # type: ignore[method-assign]

    with pytest.raises(TypeError, match="expected 2, the handler returned 1"):
        micro.handle([1, 2, 3])


def test_when_a_piece_fails_nothing_of_its_batch_runs_on(
    micro: MicroBatching, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()

    def preprocess(data: list[Any]) -> list[Any]:
        if data == [1, 2]:
            raise ValueError("not these")
        waiting.wait(10)  # these go on until somebody waits for them
        return data

    def wait_for(futures: Iterable[Future[Any]]) -> None:
        waiting.set()
        wait(futures)

    stages.preprocess = preprocess  # type: ignore[method-assign]
    monkeypatch.setattr("tsctl.handlers.torchserve.micro_batching.wait", wait_for)

    with pytest.raises(ValueError, match="not these"):
        micro.handle([1, 2, 3, 4])

    assert stages.seen["postprocess"] == [["3i", "4i"]]


def test_unreadable_rows_are_numbered_in_the_batch(micro: MicroBatching, stages: Stages) -> None:
    def preprocess(data: list[Any]) -> list[Any]:
        bad = {index: UnreadablePayload(str(each)) for index, each in enumerate(data) if each < 0}
        if bad:
            raise UnreadableRows(bad)
        return data

    stages.preprocess = preprocess  # type: ignore[method-assign]

    with pytest.raises(UnreadableRows) as raised:
        micro.handle([1, -2, 3, 4, -5])

    assert sorted(raised.value.rows) == [1, 4]


def test_a_handler_that_micro_batches_keeps_what_ours_does_for_rows(handler: Micro) -> None:
    runtime = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/")))
    bodies = [b"[1]", b'"no number"', b"[3]", b"[4]"]
    rows = [row(body, "application/json", request_id=f"r{index}") for index, body in enumerate(bodies)]
    rows[2].headers.append(("explain", "True"))

    answers = runtime.run(rows)

    assert not runtime.own_handle
    assert [answer.status for answer in answers] == [200, 400, 200, 200]
    assert [answer.body.split() for answer in answers[2:]] == [[b"explained", b"[3]"], [b"[", b"8", b"]"]]


def test_an_empty_batch_is_an_empty_list(micro: MicroBatching) -> None:
    assert micro.handle([]) == []
