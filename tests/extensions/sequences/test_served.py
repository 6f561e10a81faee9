"""Sequences with real workers: order, state, and what the end of a worker does."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Answer, Served

CONFIG = """
minWorkers: 2
maxWorkers: 2
batchSize: 4
sequenceBatching: true
maxNumSequence: 100
maxSequenceJobQueueSize: 100
"""


@pytest.fixture
def counter(served: Served) -> Served:
    served.register("counter", config=CONFIG)
    return served


def add(served: Served, name: str, number: int | str, *, start: bool = False) -> Answer:
    headers = {"Content-Type": "text/plain"}
    headers |= {"ts_request_sequence_id": name} if name else {}
    headers |= {"ts_request_sequence_start": "true"} if start else {}
    with contextlib.closing(served.connect()) as connection:
        connection.request("POST", "/predictions/counter", str(number).encode(), headers)
        return Answer.to(connection)


@pytest.mark.thin
def test_eight_clients_at_once_find_their_sums_each_at_one_worker(counter: Served) -> None:
    def client(name: str) -> tuple[list[int], set[bytes]]:
        answers = [add(counter, name, number) for number in range(1, 26)]
        assert [answer.status for answer in answers] == [200] * 25
        return [int(answer.body.split()[0]) for answer in answers], {answer.body.split()[1] for answer in answers}

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(client, "abcdefgh"))

    sums = [sum(range(1, last + 1)) for last in range(1, 26)]
    assert [each for each, _ in told] == [sums] * 8
    assert all(len(workers) == 1 for _, workers in told)
    assert len(set.union(*(workers for _, workers in told))) == 2


def test_config_properties_may_rename_the_headers(idle: Served) -> None:
    properties = idle.folder / "config.properties"
    properties.write_text("ts_header_key_sequence_id=X-Dialogue\nts_header_key_sequence_start=X-Begin\n")
    idle.start("--ts-config", str(properties))
    idle.register("counter", config=CONFIG)

    sums = [idle.ask("/predictions/counter", b"2", X_Dialogue="a").body.split()[0] for _ in range(3)]
    anew = idle.ask("/predictions/counter", b"5", X_Dialogue="a", X_Begin="true")
    unnamed = idle.ask("/predictions/counter", b"7", ts_request_sequence_id="a")

    assert (sums, anew.body.split()[0]) == ([b"2", b"4", b"6"], b"5")
    assert unnamed.body.split()[0] == b"7"
    assert unnamed.headers["x-dialogue"].startswith("ts-seq-")
