"""Why batches were sent, and what was learned of the traffic: in the describe document."""

import ast
from pathlib import Path

import pytest

import tsctl.daemon.batching
from tests.api.house import House
from tsctl.daemon.api.management.batching import batching_of
from tsctl.daemon.tables import BATCH_REASONS, size_bars


def post(house: House, count: int = 1) -> None:
    for _ in range(count):
        house.send("POST", "/predictions/m")
    house.clock.settle()


def test_whoever_sends_a_batch_gives_a_reason_of_the_table() -> None:
    given = set()
    for file in Path(tsctl.daemon.batching.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                "Send",
                "_send",
            ):
                constants = (part for argument in node.args for part in ast.walk(argument))
                given |= {part.value for part in constants if isinstance(part, ast.Constant)}
    given = {each for each in given if isinstance(each, str)}

    assert {"full", "delay", "retry", "solo", "at_once"} <= given <= set(BATCH_REASONS)


async def test_what_was_learned_is_told(house: House) -> None:
    house.engine.batch_time = lambda size: 0.008 + 0.0004 * size
    model = await house.serve("m", config="batchSize: 2\nbatching: fixed")
    for count in (1, 1, 2, 1, 2):
        post(house, count)
        house.clock.advance(0.5)
    told = batching_of(model)

    assert told["learned"] == {
        "batchMs": pytest.approx(8.0),
        "requestMs": pytest.approx(0.4),
        "byteMs": None,
        "guess": False,
        "bestSize": None,
        "sizes": [],
        "together": [
            {"busy": 1, "size": 1, "ms": pytest.approx(8.4)},
            {"busy": 1, "size": 2, "ms": pytest.approx(8.8)},
        ],
    }
    assert told["sizes"] == {"1": 3, "2": 2}
    assert told["ranges"] == [{"sizes": "1", "batches": 3}, {"sizes": "2", "batches": 2}]


async def test_where_batches_gain_nothing_auto_makes_none_and_tells_what_each_size_costs(house: House) -> None:
    house.engine.batch_time = lambda size: 0.025 * size
    model = await house.serve("m", config="batchSize: 8\njobQueueSize: 1000")
    for _ in range(8):
        post(house, 60)
        house.clock.advance(2.0)

    learned = batching_of(model)["learned"]

    assert learned["bestSize"] == 1 and model.dispatcher.reasons["no_gain"] > 0
    costs = {each["size"]: each["requestMs"] for each in learned["sizes"]}
    assert (costs[1], costs[8]) == (pytest.approx(25.0, rel=0.02), pytest.approx(25.0, rel=0.02))


async def test_one_size_alone_leaves_a_guess(house: House) -> None:
    house.engine.batch_time = lambda size: 0.008
    model = await house.serve("m")
    for _ in range(2):  # the first batch of a worker takes longer, and does not count
        post(house)
        house.clock.advance(1.0)

    learned = batching_of(model)["learned"]
    assert (learned["batchMs"], learned["requestMs"], learned["guess"]) == (4.0, 4.0, True)


async def test_a_rate_sinks_while_nobody_comes(house: House) -> None:
    model = await house.serve("m")
    for _ in range(11):
        post(house)
        house.clock.advance(0.1)
    busy = batching_of(model)["arrivalsPerSecond"]
    house.clock.advance(8.9)

    # Ten gaps of 0.1 s; then silence, of 0.1 s and of 9 s.
    assert busy == pytest.approx(10 / 1.1, rel=0.05)
    assert batching_of(model)["arrivalsPerSecond"] == pytest.approx(10 / 10, rel=0.05)


async def test_connections_turnaround_and_the_longest_hold_are_told(house: House) -> None:
    house.engine.batch_time = lambda size: 0.1
    model = await house.serve("m", config="batchSize: 8\nmaxBatchDelay: 30\nbatching: fixed")
    head = b"POST /predictions/m HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    peer = house.send("POST", "/predictions/m")
    for _ in range(5):
        house.clock.advance(0.15)  # held for 30 ms, run for 100, and 20 until the next
        peer.send(head)
    told = batching_of(model)

    assert (told["regularConnections"], told["openConnections"]) == (1, 1)
    assert told["longestHoldMs"] == pytest.approx(30.0)
    assert 20.0 <= told["turnaroundMs"] <= 32.0  # the upper edge of a bucket

    house.clock.advance(20.0)
    assert batching_of(model)["regularConnections"] == 0


@pytest.mark.parametrize(
    ("sizes", "bars"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"2": 1, "8": 5}, [("2", 1), ("8", 5)], id="each up to eight"),
        pytest.param({"9": 1, "16": 2, "17": 3, "32": 4}, [("9-16", 3), ("17-32", 7)], id="larger ones in ranges"),
        pytest.param({"32": 9, "128": 1, "65": 1}, [("32", 9), ("65-128", 2)], id="one alone by its name"),
    ],
)
def test_batch_sizes_have_few_bars(sizes: dict[str, int], bars: list[tuple[str, int]]) -> None:
    assert size_bars(sizes) == bars
