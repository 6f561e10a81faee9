"""A version whose requests may take only so long."""

from typing import Any

from tests.kit.version import StubVersion


def limited(**options: Any) -> StubVersion:
    """Make a greedy version whose batches take a second; its worker holds one at a time."""
    defaults: dict[str, Any] = {"policy": "greedy", "capacity": 1}
    return StubVersion(**defaults | options)


def learn(bench: StubVersion, times: int = 2) -> None:
    """Let batches of one come back, so that their time is known (the first of a worker does not count)."""
    for index in range(times):
        bench.ask(f"learning-{index}")
        while not bench.model.idle:
            bench.clock.step()
    bench.client.replies.clear()


def told(bench: StubVersion, name: str) -> str:
    """Return the text by which a request was told that its time is over."""
    reply = bench.client.reply(name)
    assert (reply.status, reply.error) == (504, "RequestTimeoutException")
    return reply.body.decode()
