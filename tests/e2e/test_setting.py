"""`tsctl set` on a model under load: nothing is lost, no worker starts anew, and a restart keeps it."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tests.e2e.load import Load, Seen
from tests.e2e.served import Served, eventually


def answers(seen: Iterable[Seen]) -> list[dict[str, Any]]:
    return [json.loads(each.told) for each in seen if each.status == 200]


def see(load: Load, rows: int, batch_size: int) -> None:
    """Wait for an answer of a batch of this size, whose handler was told this batch size."""
    eventually(
        lambda: any(
            each["rows"] == rows and each["batchSize"] == batch_size
            for client in load.seen
            for each in answers(client[-25:])
        ),
        f"a batch of {rows} where {batch_size} are allowed",
    )


@pytest.mark.thin
def test_under_load_nothing_is_lost_and_no_worker_starts_anew(served: Served) -> None:
    served.register("sized", "--batch-size", "1")

    with Load(served, "/predictions/sized") as load:
        see(load, rows=1, batch_size=1)
        said = served.tsctl("set", "sized", "--batch-size", "8", "--max-delay", "20", "--batching", "fixed")
        see(load, rows=8, batch_size=8)
        for batching, size in (("greedy", 4), ("auto", 2), ("fixed", 8), ("auto", 3)):
            served.tsctl("set", "sized", "--batching", batching, "--batch-size", str(size))
            see(load, rows=size, batch_size=size)

    assert said.splitlines() == [
        "Set the batch size of `sized` 1.0 from 1 to 8",
        "Set the maximum delay of `sized` 1.0 from 100 to 20 ms",
        "Set the batching of `sized` 1.0 from auto to fixed",
    ]
    assert load.failures == []
    assert len({answer["pid"] for answer in answers(load)}) == 1
    batching = served.describe("sized")["tsctl"]["batching"]
    assert sum(int(size) * count for size, count in batching["sizes"].items()) == len(list(load))
    assert Counter(batching["reasons"]).total() == Counter(batching["sizes"]).total()
