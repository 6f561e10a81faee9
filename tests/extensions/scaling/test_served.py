"""A real daemon adds a worker while requests wait, and tells of it."""

import json
import threading

import pytest

from tests.e2e.served import Served, eventually
from tsctl.daemon.workers.cores import usable_cores


@pytest.mark.thin
@pytest.mark.skipif(usable_cores() < 2, reason="two workers need two cores")
def test_a_worker_is_added_while_requests_wait_and_describe_shows_why(served: Served) -> None:
    served.register("answer", "--workers", "1", "--max-workers", "2", "--target-queue", "50")
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            assert served.ask("/predictions/answer", b"slow a").status == 200

    clients = [threading.Thread(target=ask) for _ in range(6)]
    for client in clients:
        client.start()
    try:
        eventually(lambda: len(served.describe("answer")["workers"]) == 2, "a second worker")
    finally:
        enough.set()
        for client in clients:
            client.join()

    events = map(json.loads, served.tsctl("events", "answer", "--json").splitlines())
    (added,) = [event["text"] for event in events if event["kind"] == "autoscaled"]
    assert added.startswith("scaled from 1 to 2: predicted wait ")
    assert added.endswith(" ms > 50 ms")
    (shown,) = [line for line in served.tsctl("describe", "answer").splitlines() if "autoscaling" in line]
    assert "1 to 2 workers, target 50 ms, predicted wait " in shown
