"""A real Prometheus raises each alert of the rules for a real daemon that is made to fail in that way."""

import http.client
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from importlib.resources import files
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.e2e.load import repeating
from tests.e2e.served import Served, eventually
from tests.extensions.prometheus.tsctl.server import Prometheus, quickened
from tests.kit.shelf import modules

RULES = (files("tsctl.extensions.prometheus") / "rules.yml").read_text(encoding="utf-8")
# alert → the model that is made to fail in that way; none for an alert of the daemon
EXPECTED = {
    "TsctlModelDown": "fragile",
    "TsctlRequestsFail": "fails",
    "TsctlSlow": "slow",
    "TsctlQueueOld": "late",
    "TsctlRequestsExpire": "expires",
    "TsctlRequestsRefused": "full",
    "TsctlWorkersBusy": "slow",
    "TsctlWorkersDie": "dies",
    "TsctlModelCrashing": "dies",
    "TsctlWorkersMissing": "fragile",
    "TsctlDiskFull": "",
    "TsctlLoopStalls": "",
    "TsctlServerEnds": "",
    "TsctlInternalErrors": "",  # no known request raises it: tests/extensions/prometheus/tsctl/test_rules.py alone
}


def asking(served: Served, model: str, *words: str, clients: int = 1) -> AbstractContextManager[None]:
    """Let clients ask for these words in turn, again and again; whatever the answers are."""

    def ask(number: int, turns: Iterator[int]) -> None:
        turn = next(turns)
        asked = {"do": words[turn % len(words)], "number": f"{number} {turn}"}
        with suppress(OSError, http.client.HTTPException):
            served.predict(model, asked, x_request_deadline_ms="60000")

    return repeating(*(partial(ask, number, count(1)) for number in range(clients)), every=0.02)


def stalling(pid: int) -> AbstractContextManager[None]:
    """Stop a process for most of a second, every few seconds."""

    def stall() -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.2)
        os.kill(pid, signal.SIGCONT)

    return repeating(stall, every=3.0)


def test_the_rules_are_as_many_as_the_troubles() -> None:
    assert [rule["alert"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]] == list(EXPECTED)


@pytest.fixture
def enders(idle: Served) -> list[Callable[[], None]]:
    """What ends a server of the daemon that is started next: those of extensions that can be ended by a client."""
    return [each.ender(idle) for each in modules("ending")]


def test_each_trouble_raises_its_alert_and_a_healthy_model_none(
    enders: list[Callable[[], None]], fragile: Served, tmp_path: Path
) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus: `python -m tests.lab system-packages` fetches it")
    served = fragile
    served.register("obey", "--batch-size", "1", name="well")
    for model in ("fails", "slow", "late", "dies"):
        served.register("obey", "--batch-size", "1", name=model)
    served.register("obey", "--batch-size", "1", "--client-timeout", "0.2", name="expires")
    served.register("obey", "--batch-size", "1", "--queue-jobs", "1", name="full")
    prometheus = Prometheus(program, tmp_path / "prometheus", quickened(RULES), served.url.removeprefix("http://"))
    try:
        seen: set[tuple[str, str]] = set()

        def fired(*alerts: str) -> bool:
            seen.update(prometheus.firing())
            return seen >= {(alert, EXPECTED[alert]) for alert in alerts}

        with ExitStack() as troubles:
            troubles.enter_context(asking(served, "well", "x"))
            troubles.enter_context(asking(served, "fails", *["x"] * 9, "raise"))
            troubles.enter_context(asking(served, "slow", "sleep 1.5", clients=2))
            troubles.enter_context(asking(served, "late", "sleep 8", clients=3))
            troubles.enter_context(asking(served, "expires", "sleep 1"))
            troubles.enter_context(asking(served, "full", "sleep 1", clients=8))
            troubles.enter_context(asking(served, "dies", "exit"))
            (served.folder / "word").write_text("fail")
            os.kill(served.pids("fragile")[0], signal.SIGKILL)
            for alert in EXPECTED:
                if EXPECTED[alert]:
                    eventually(partial(fired, alert), f"{alert} fires")
        # These make scrapes fail, which takes the others back.
        before = resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        served.command("PATCH", "/models/well?batch_size=2")
        eventually(partial(fired, "TsctlDiskFull"), "a disk without room is told")
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, before)
        with stalling(served.pid):
            eventually(partial(fired, "TsctlLoopStalls"), "stalls are told")
        for end in enders:
            end()
            eventually(partial(fired, "TsctlServerEnds"), "the end of a server is told")
    finally:
        prometheus.stop()

    assert not [alert for alert, model in seen if model == "well"]
