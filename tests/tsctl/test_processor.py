"""The load generator's share of the processors."""

from pathlib import Path

import pytest

from tsctl.loadgen import tally as processor


@pytest.mark.parametrize(("text", "waited"), [("7 2500000000 3\n", 2.5), ("", 0.0), (None, 0.0)])
def test_a_kernel_may_count_the_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, waited: float
) -> None:
    if text is not None:
        (tmp_path / "schedstat").write_text(text)
    monkeypatch.setattr(processor, "_SCHEDSTAT", tmp_path / "schedstat")

    assert processor.look().waited == waited


def test_between_two_looks_is_what_was_added() -> None:
    found = processor.ProcessorTime(3.0, 1.5) - processor.ProcessorTime(1.0, 1.0)

    assert found == processor.ProcessorTime(2.0, 0.5)
