"""A template times its model's defaults in a process of its own, after its first workers."""

import json
import os
from pathlib import Path

import pytest

from tests.handlers.forked import template
from tests.handlers.optimize.nets import put_archive
from tsctl.handlers import orders, wire
from tsctl.handlers.optimize.trials.verdicts import VARIABLE

pytestmark = [pytest.mark.slow, pytest.mark.heavy]


def load_of(directory: Path) -> wire.Load:
    manifest = {"model": put_archive(directory)}
    return wire.Load("net", "1.0", str(directory), "image_classifier", manifest, batch_size=2, threads=1)


def test_defaults_are_timed_once_and_known_to_the_next_template(tmp_path: Path) -> None:
    model, trials = tmp_path / "net", tmp_path / "trials"
    model.mkdir()
    load = load_of(model)
    with template(environment={VARIABLE: str(trials)}) as peer:
        assert isinstance(peer.hear(), orders.Ready)
        shared = peer.grow([], load)
        ready = shared.hear()
        assert isinstance(ready, orders.Ready) and ready.untimed
        (kept,) = trials.iterdir()
        assert not json.loads(kept.read_text())["timed"]

        report, _, _ = shared.order(orders.Time())
        assert isinstance(report, orders.Forked)
        code = os.waitstatus_to_exitcode(os.waitpid(report.pid, 0)[1])

        assert code in (0, orders.EXIT_LOAD_ANEW)
        if json.loads(kept.read_text())["timed"]:  # else the machine was too busy
            again = peer.grow([], load).hear()
            assert isinstance(again, orders.Ready) and not again.untimed
        worker = shared.fork(model)  # the template is as it was
        worker.hear()
        worker.tell(load)
        loaded = worker.hear()
        worker.end()

    assert isinstance(loaded, wire.Loaded)
    assert loaded.optimized and all(each.drift is not None for each in loaded.optimized)
