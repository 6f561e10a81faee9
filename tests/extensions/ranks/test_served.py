"""Workers that are groups of processes, for real: gloo on the CPU."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.archives.split import IN, whole
from tests.e2e.load import repeating
from tests.e2e.served import Answer, Served, eventually

TWO = "parallelType: {kind}\ntorchrun:\n  nproc-per-node: 2\n"
JSON = {"content_type": "application/json"}
VALUES = [0.5 * number for number in range(IN)]


def register(served: Served, handler: str, *options: str, kind: str = "tp", further: str = "") -> None:
    served.register(handler, *options, config=TWO.format(kind=kind) + further)


def body(**members: object) -> bytes:
    return json.dumps({"values": VALUES} | members).encode()


def ask(served: Served, **members: object) -> Answer:
    return served.ask("/predictions/split", body(**members), content_type="application/octet-stream")


def ranks_of(served: Served, model: str) -> list[int]:
    """Return the pids of a version's only worker and of its other ranks."""
    [worker] = served.describe(model)["workers"]
    leader = worker["pid"]
    children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    return [leader, *map(int, children)]


def runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def gone(pids: list[int]) -> Callable[[], bool]:
    return lambda: not any(runs(pid) for pid in pids)


def states(served: Served) -> Any:
    return served.describe("split")["tsctl"]["workers"]


@pytest.fixture(scope="module")
def expected() -> Any:
    """Return the answer of the whole layer."""
    import torch

    return pytest.approx(whole()(torch.tensor(VALUES)).tolist(), rel=1e-5)


def test_a_layer_split_over_two_processes_gives_the_answers_of_the_whole_one(served: Served, expected: Any) -> None:
    register(served, "split", "--batch-size", "4")
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda _: ask(served), range(24)))

    assert {answer.status for answer in answers} == {200}
    assert all(answer.json == expected for answer in answers)
    described = served.describe("split")
    assert (described["parallelType"], described["parallelLevel"]) == ("tp", 2)
    assert "parallel tp, 2 for each worker" in " ".join(served.tsctl("describe", "split").split())

    pids = ranks_of(served, "split")
    assert len(pids) == 2
    refused = ask(served, **{"raise": "all"})
    assert (refused.status, b"was told to raise" in refused.body) == (503, True)
    assert (ask(served).status, ranks_of(served, "split")) == (200, pids)  # they failed together, and go on

    served.tsctl("unregister", "split")
    eventually(gone(pids), "no process is left")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_group_is_replaced_when_one_of_its_processes_is_killed_under_load(
    served: Served, expected: Any, rank: int
) -> None:
    register(served, "split", "--batch-size", "4", "--retry")
    before = ranks_of(served, "split")
    answers: Counter[int] = Counter()

    def client() -> None:
        answer = ask(served)
        answers[answer.status] += 1
        assert answer.json == expected, answer.body

    with repeating(*[client] * 4):
        os.kill(before[rank], signal.SIGKILL)
        eventually(gone(before), "the whole group has gone")
        eventually(lambda: states(served) == ["READY"], "another group is ready")

    assert set(answers) == {200}
    why = "rank 1 was killed by SIGKILL" if rank else "killed by SIGKILL (perhaps by the kernel, out of memory)"
    assert served.describe("split")["tsctl"]["lastExit"] == why


def test_continuous_batching_makes_the_same_calls_in_each_process(served: Served) -> None:
    register(served, "agrees", further="batchSize: 4\ncontinuousBatching: true\n")

    def count(number: int) -> tuple[int, bytes]:
        if number % 5 == 4:  # a client that leaves
            connection = served.connect()
            connection.request("POST", "/predictions/agrees", b"100000", {"Content-Type": "text/plain"})
            connection.getresponse().read1()
            connection.close()
            return 0, b""
        answer = served.ask("/predictions/agrees", str(1 + number * 7 % 40).encode(), content_type="text/plain")
        return 1 + number * 7 % 40, answer.body

    with ThreadPoolExecutor(6) as clients:
        answers = list(clients.map(count, range(60)))

    assert all(body == b"." * tokens for tokens, body in answers)
