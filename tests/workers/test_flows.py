"""Bytes in flight to a client give its row no credit; bytes read by the client do, half a window at once."""

import pytest

from tsctl.daemon.workers.frames import Flows
from tsctl.handlers.credit import GRANT, WINDOW


@pytest.fixture
def granted() -> list[tuple[int, int, int]]:
    return []


@pytest.fixture
def flows(granted: list[tuple[int, int, int]]) -> Flows:
    return Flows(lambda *credit: granted.append(credit))


def test_a_short_stream_costs_no_frame(flows: Flows, granted: list[tuple[int, int, int]]) -> None:
    flow = flows.of(7, 0)

    for _ in range(10):
        flow.passed(GRANT // 11)
        flow.drained()
    flows.close(7)

    assert granted == []


def test_what_was_taken_is_granted_once(flows: Flows, granted: list[tuple[int, int, int]]) -> None:
    flow = flows.of(7, 2)
    flow.passed(GRANT - 1)
    flow.passed(5)
    assert granted == []

    flow.drained()
    flow.drained()

    assert granted == [(7, 2, GRANT + 4)]


def test_a_row_is_used_up_until_its_client_reads(flows: Flows) -> None:
    flows.of(7, 0).passed(WINDOW - 1)
    assert not flows.used_up(7)
    flows.of(7, 0).passed(1)
    assert flows.used_up(7)
    assert not flows.used_up(8)

    flows.of(7, 0).drained()

    assert not flows.used_up(7)


def test_a_client_that_has_gone_is_told_of_once(flows: Flows, granted: list[tuple[int, int, int]]) -> None:
    flow = flows.of(7, 0)
    flow.passed(3 * WINDOW)

    flow.refuse()
    flow.refuse()
    flow.drained()

    assert granted == [(7, 0, 0)]
    assert not flows.used_up(7)


@pytest.mark.parametrize("all_of_them", [True, False])
def test_a_batch_that_has_ended_gets_no_credit(
    flows: Flows, granted: list[tuple[int, int, int]], all_of_them: bool
) -> None:
    flow = flows.of(7, 0)
    flow.passed(3 * WINDOW)

    if all_of_them:
        flows.close_all()
    else:
        flows.close(7)
    flow.drained()
    flow.refuse()

    assert granted == []
    assert not flows
