"""Large answers are bounded together until gRPC has written them."""

from pathlib import Path

import pytest

from tests.extensions.grpc.client import MOST_UNREAD, grpc_house, prediction
from tests.extensions.grpc.test_predictions import failure, until
from tests.kit.clock import FakeClock
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.grpc.waiting.writing import COUNTED, Peer, Writing
from tsctl.daemon.http.bounds.sending import NoRoomToSend, SendBudget


def test_an_answer_counts_until_it_is_written() -> None:
    budget = SendBudget(MOST_UNREAD)
    writing = Writing(budget, FakeClock())

    written = writing.begin_answer("1", COUNTED)
    assert budget.used == COUNTED and written is not None
    written()

    assert budget.used == 0


def test_a_small_answer_never_counts() -> None:
    assert Writing(SendBudget(0), FakeClock()).begin_answer("1", COUNTED - 1) is None


def test_one_answer_of_any_size_is_sent_and_a_second_of_another_connection_has_to_fit() -> None:
    clock = FakeClock()
    writing = Writing(SendBudget(COUNTED), clock)
    written = writing.begin_answer("1", 10 * COUNTED)

    for _ in range(2):  # a client that does not read is not closed for another, however long
        with pytest.raises(NoRoomToSend, match="max_sending_bytes"):
            writing.begin_answer("2", COUNTED)
        clock.advance(60.0)
    assert written is not None
    written()

    assert writing.begin_answer("2", COUNTED) is not None


def test_a_connection_has_an_eighth_of_the_budget() -> None:
    writing = Writing(SendBudget(16 * COUNTED), FakeClock())
    assert writing.begin_answer("1", COUNTED) and writing.begin_answer("1", COUNTED)

    with pytest.raises(NoRoomToSend):
        writing.begin_answer("1", COUNTED)
    assert writing.begin_answer("2", COUNTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Predictions", "StreamPredictions"])
async def test_a_call_whose_answer_has_no_room_ends_with_the_reason(tmp_path: Path, name: str) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")
        made.house.engine.answer = lambda job: Reply(200, bytes(1_000_000 if job.params[0].value == b"large" else 10))
        other = Peer()
        made.sending.count_bytes(other, MOST_UNREAD, 0.0)

        async def ask(size: bytes) -> int:
            call = made.call(name, prediction("m", data=size))
            if name == "Predictions":
                return len((await call).prediction)
            return sum([len(each.prediction) async for each in call])

        code, reason = await failure(made, ask(b"large"))
        assert code == "RESOURCE_EXHAUSTED" and "max_sending_bytes" in reason
        assert made.statuses == [503]
        assert await made.settled(ask(b"small")) == 10
        made.sending.drop(other, MOST_UNREAD)
        assert await made.settled(ask(b"large")) == 1_000_000
        await until(lambda: made.sending.used == 0)
