"""`optimize: auto`: plain at once, the faster set when it is found, and nobody waits or is refused meanwhile."""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.load import repeating
from tests.e2e.served import Served, eventually, processes_of, raise_priority
from tests.handlers.optimize.nets import pack_net
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.optimize import inductor

LONG = 600.0  # seconds of patience: a trial loads several sets, some of which compile
# Sixty passes over memory, which a compiler makes one: several times as fast.
PASSES = """
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
            self.head = nn.Linear(32, 6)
        def forward(self, images):
            x = self.stem(images)
            for _ in range(60):
                x = torch.relu(x * 1.01 - 0.001)
            return self.head(x.mean(dim=(2, 3)))
"""
unfit = inductor.refusal(torch.nn.Identity(), torch.device("cpu"))
pytestmark = pytest.mark.skipif(bool(unfit), reason=unfit)


@pytest.fixture
def net(served: Served, tmp_path: Path) -> Served:
    served.tsctl("stop")
    served.environment["TSCTL_TEMPLATE"] = "true"
    served.start()
    config = "optimize: auto\nbatchSize: 2\nmaxBatchDelay: 5\n"
    served.tsctl("register", pack_net(tmp_path / "net", served.store, config, PASSES))
    return served


def trials_of(served: Served) -> list[int]:
    """Return the processes of trials of this daemon, and their workers."""
    found = []
    for process in processes_of(served):
        with contextlib.suppress(OSError):
            if b"tsctl.daemon.extensions.optimizing.measuring" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def trial(served: Served) -> dict[str, Any]:
    return served.describe("net")["tsctl"]["trial"]  # type: ignore[no-any-return]


def applied(served: Served) -> set[str]:
    return {each["name"] for each in served.describe("net")["tsctl"]["optimize"] if each["applied"]}


def test_the_faster_set_takes_over_while_requests_come_and_is_remembered_after_a_restart(net: Served) -> None:
    assert net.ask("/predictions/net", example_image()).status == 200
    assert "compile" not in applied(net), "it answers before anything is compiled"
    assert trial(net)["state"] in ("pending", "running")
    (before,) = net.describe("net")["workers"]

    eventually(lambda: trial(net)["state"] != "pending", "a trial begins")
    statuses = Counter[int]()

    def ask() -> None:
        statuses[net.ask("/predictions/net", example_image()).status] += 1

    with repeating(ask, every=0.02):

        def ended() -> bool:
            raise_priority(net)
            return trial(net)["state"] not in ("running", "taking over")

        eventually(ended, "the trial ends", LONG)

    found = trial(net)
    assert (found["state"], found["chosen"]) == ("chosen", ["compile"]), found
    assert "compile" in applied(net)
    (after,) = net.describe("net")["workers"]
    assert after["pid"] != before["pid"]
    assert set(statuses) == {200}
    events = net.tsctl("events")
    assert "trial-started" in events and "optimized" in events
    assert "trial chosen" in net.tsctl("describe", "net")

    net.tsctl("stop")
    net.start()
    eventually(lambda: net.ask("/predictions/net", example_image()).status == 200, "an answer after the restart")

    assert "compile" in applied(net)
    assert (trial(net)["state"], trial(net)["attempts"]) == ("chosen", 1)


def test_a_stop_ends_a_trial_that_runs_and_the_next_daemon_makes_it(net: Served) -> None:
    net.ask("/predictions/net", example_image())
    eventually(lambda: trial(net)["state"] == "running", "a trial begins")

    assert len(trials_of(net)) == 1
    net.tsctl("stop")
    assert trials_of(net) == []
    net.start()

    assert (trial(net)["state"], trial(net)["attempts"]) == ("pending", 0)
