"""A known client gets its models and its rate, and is told what it exceeds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.said import reason, said_in
from tsctl.daemon.core.client import BodyTooLong, ModelNotAllowed, TooManyRequests
from tsctl.daemon.extensions.keys.known_clients import KnownClient


def admitted(client: KnownClient, times: list[float]) -> list[float]:
    """Return the times of the requests that are not refused."""
    taken = []
    for now in times:
        try:
            client.admit("m", 0, now)
        except TooManyRequests:
            continue
        taken.append(now)
    return taken


@said_in("rights.txt")
def test_the_models_of_a_client(given: str) -> str:
    models, model = json.loads(given)
    client = KnownClient("c", None if models is None else tuple(models))
    told = reason(lambda: client.admit(model, 0, 0.0), ModelNotAllowed)
    assert client.may_use(model) == told.startswith("accepted")
    return told


def test_a_burst_comes_at_once_and_then_the_rate_counts() -> None:
    client = KnownClient("c", rate=2.0, burst=3)

    assert admitted(client, [10.0] * 5 + [10.4, 10.5, 10.5, 11.0]) == [10.0, 10.0, 10.0, 10.5, 11.0]


def test_a_refused_request_names_the_time_of_the_next_and_does_not_count() -> None:
    client = KnownClient("c", rate=0.5, burst=1)
    client.admit("m", 0, 100.0)

    for _ in range(3):
        with pytest.raises(
            TooManyRequests, match=r"0\.5 requests a second, 1 at once \(429\): the next one in 1\.5 s"
        ) as refused:
            client.admit("m", 0, 100.5)

    assert refused.value.retry_after == 2
    client.admit("m", 0, 102.0)


def test_a_body_whose_head_told_no_length_is_measured_when_it_is_there() -> None:
    with pytest.raises(BodyTooLong, match="The body has 11 bytes; client `c` may send 10"):
        KnownClient("c", bytes=10).admit("m", 11, 0.0)


@given(rate=st.floats(0.1, 100), burst=st.integers(1, 20), gaps=st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_in_any_time_no_more_than_a_burst_and_the_rate_are_admitted(rate: float, burst: int, gaps: list[float]) -> None:
    now, times = 0.0, []
    for gap in gaps:
        now += gap
        times.append(now)

    taken = admitted(KnownClient("c", rate=rate, burst=burst), times)

    assert taken[0] == times[0]
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) * rate + 1e-6
