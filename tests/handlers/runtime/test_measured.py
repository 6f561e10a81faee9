"""A worker's frames carry its handler's measurements."""

from pathlib import Path

import pytest

from tests.handlers.samples import row, write
from tests.handlers.test_worker import converse, load_of
from tsctl.handlers import wire

COUNTING = """
    import time
    class Counting:
        def initialize(self, context):
            context.metrics.add_size("Weights", 12)
        def handle(self, data, context):
            context.metrics.add_counter("Rows", len(data))
            if any(row["body"] == b"fail" for row in data):
                raise ValueError("as you wish")
            time.sleep(0.02)
            return [""] * len(data)
"""
MODEL = (("ModelName", "net"), ("Level", "Model"))


def test_each_frame_carries_what_was_measured_since_the_last(
    model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(model_dir / "mine.py", COUNTING)
    batches = [wire.Predict(1, [row(b""), row(b"")]), wire.Predict(2, [row(b"fail")]), wire.Predict(3, [row(b"")])]

    _, said = converse([load_of(model_dir), *batches])

    loaded, *done = said[1:]
    assert isinstance(loaded, wire.Loaded)
    assert loaded.measured == [wire.Measurement("gauge", "Weights", "Megabytes", MODEL, 12.0)]
    rows = [[each.value for each in message.measured if each.name == "Rows"] for message in done]  # type: ignore[union-attr]
    assert rows == [[2.0], [1.0], [1.0]]  # also of the batch that failed
    printed = capsys.readouterr().out
    assert "[METRICS]Rows.Count:2|#ModelName:net,Level:Model|#type:COUNTER|#hostname:" in printed
    last = done[-1]
    assert isinstance(last, wire.Done)
    (spent,) = [each for each in last.measured if each.name == "HandlerTime"]
    assert (spent.kind, spent.unit, spent.labels) == ("gauge", "ms", MODEL)
    assert 20 <= spent.value <= last.seconds * 1000
    assert "HandlerTime" not in printed, "the time in the handler comes without a line in the log"
