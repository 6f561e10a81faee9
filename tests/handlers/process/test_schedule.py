"""How a worker takes batches: in turn, or the next beside the one that runs; the daemon hears of each."""

import time
from pathlib import Path

import pytest

from tests.handlers.samples import row, write
from tests.handlers.test_worker import converse, load_of
from tsctl.handlers import wire

# The inference of `a` ends when `b` has been read.
MEETS = """
    import threading
    from tsctl.handlers.builtin.base import BaseHandler
    READ = threading.Event()
    class Meets(BaseHandler):
        def initialize(self, context):
            self.initialized = True
        def preprocess(self, data):
            if bytes(data[0]["body"]) == b"b":
                READ.set()
            return data
        def inference(self, data):
            assert READ.wait(20)
            return data
        def postprocess(self, data):
            return [bytes(each["body"]).decode() for each in data]
"""


class Clock:
    """Stands still unless it is moved."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


BATCHES = [wire.Predict(7, [row(b"a")]), wire.Predict(8, [row(b"b")])]


def load(model_dir: Path, config: str, handler: str = MEETS) -> wire.Load:
    write(model_dir / "mine.py", handler)
    (model_dir / "model-config.yaml").write_text(config)
    made = load_of(model_dir)
    made.manifest = {"model": {"configFile": "model-config.yaml"}}
    return made


def test_a_pipelined_model_begins_a_batch_beside_another_and_says_so(model_dir: Path) -> None:
    code, said = converse([load(model_dir, "pipeline: true"), *BATCHES, wire.Threads(2), wire.BatchSize(4)])

    assert code == 0
    assert [each.batch for each in said if isinstance(each, wire.Started)] == [7, 8]
    done = [each for each in said if isinstance(each, wire.Done)]
    assert [(each.batch, each.answers[0].body) for each in done] == [(7, b"a"), (8, b"b")]
    assert said.index(wire.Started(8)) < said.index(done[0])


def test_the_time_of_a_batch_leaves_out_that_of_the_one_before(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "perf_counter", Clock())
    timed = MEETS.replace(
        "assert READ.wait(20)", "assert READ.wait(20); import time; time.perf_counter.seconds += 10.0"
    )

    _, said = converse([load(model_dir, "pipeline: true", timed), *BATCHES])

    # Both were read at 0, and the second waited for the 10 seconds of the first.
    assert sum(each.seconds for each in said if isinstance(each, wire.Done)) == 20.0


def test_others_begin_a_batch_when_the_one_before_is_answered_and_say_nothing(model_dir: Path) -> None:
    alone = MEETS.replace("READ.wait(20)", "True")

    _, said = converse([load(model_dir, "pipeline: false", alone), *BATCHES])

    assert [type(each) for each in said] == [wire.Hello, wire.Loaded, wire.Done, wire.Done]
