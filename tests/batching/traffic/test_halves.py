"""Whether clients are served in two halves: both ways are measured, and the faster one is taken."""

import itertools
import math
import random

import pytest

from tsctl.daemon.batching.traffic.halves import EARLY, KEPT, LEAST_PAIRS, PAUSE, REVIEW, SETTLING, SOON, SPAN, Halves

BATCH_SIZE = 8
COMPARED = 2 * LEAST_PAIRS + 1  # spans until both ways are known, where they do not vary


class Server:
    """Clients that ask again at once, one worker, and a daemon that takes its time for each request and each batch.

    Args:
        per_batch, per_job: seconds in the worker.
        pause: seconds between the end of a batch and the next one, for each client, if all are in one batch.

    Attributes:
        noise: how much a batch's time varies, of the logarithms; what other programs do lasts for some batches.
    """

    def __init__(self, per_batch: float, per_job: float, pause: float, clients: int = 8) -> None:
        self.halves = Halves()
        self.per_batch, self.per_job, self.pause, self.clients = per_batch, per_job, pause, clients
        self.now = 50.0
        self.noise = self.slowness = 0.0
        self.random = random.Random(5)
        self.told_per_batch = per_batch
        self.shares: list[int] = []  # when each batch was sent

    def run(self, spans: int = 1) -> None:
        for _ in range(spans * (SPAN + SETTLING)):
            self.shares.append(self.halves.share)
            jobs = self.halves.share or self.clients
            seconds = self.per_batch + self.per_job * jobs
            beside = self.pause * jobs
            self.slowness += 0.3 * self.noise * self.random.gauss(0.0, 1.0) - 0.05 * self.slowness
            self.now += (max(seconds, beside) if self.halves.share else seconds + beside) * math.exp(self.slowness)
            self.back(jobs, seconds)

    def back(self, jobs: int, seconds: float) -> None:
        self.halves.returned(jobs, seconds, self.now, self.clients, BATCH_SIZE, self.told_per_batch)


def test_halves_are_tried_and_kept_where_the_worker_waits_for_the_daemon() -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)

    server.run(spans=COMPARED)

    assert server.halves.share == 4


@pytest.mark.parametrize(
    ("per_batch", "per_job"),
    [
        pytest.param(0.005, 0.0001, id="clients of a large fixed part stay together"),
        pytest.param(0.00002, 0.000002, id="a handler that does next to nothing is not asked more often"),
    ],
)
def test_where_halves_bring_nothing_there_are_none(per_batch: float, per_job: float) -> None:
    server = Server(per_batch, per_job, pause=0.00004)

    for _ in range(2 * REVIEW):
        server.run()
        assert not server.halves.share


def test_the_faster_way_is_found_on_a_machine_whose_spans_vary_by_more_than_the_ways_differ() -> None:
    for pause, faster in ((0.00002, 4), (0.000001, 0)):
        server = Server(per_batch=0.0001, per_job=0.0001, pause=pause)
        server.noise = 0.3
        server.run(spans=20 * REVIEW)

        served = sum(share == faster for share in server.shares)

        assert served > 0.9 * len(server.shares), f"{served} of {len(server.shares)} batches, {server.halves!r}"


def test_halves_that_are_slower_than_thought_are_left_at_once_and_tried_again_later_each_time() -> None:
    server = Server(per_batch=0.005, per_job=0.0001, pause=0.00004)
    server.told_per_batch = 0.0  # sizes have not differed: unknown

    server.run(spans=COMPARED)

    assert server.shares.count(4) == LEAST_PAIRS * (SETTLING + EARLY), "each span of them ends early"

    server.run(spans=6 * REVIEW)

    tries = [number for number, share in enumerate(server.shares) if share and not server.shares[number - 1]]
    spans = [(later - former) // SPAN for former, later in itertools.pairwise(tries[LEAST_PAIRS - 1 :: LEAST_PAIRS])]
    assert 3 * spans[0] < 2 * spans[1] and 3 * spans[1] < 2 * spans[2] and spans[2] > REVIEW * LEAST_PAIRS


def test_whole_batches_are_measured_again_and_halves_stay_if_they_are_still_faster() -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)
    server.shares.clear()

    server.run(spans=SOON * LEAST_PAIRS + COMPARED)

    assert server.shares.count(0) == LEAST_PAIRS * (SETTLING + SPAN) and server.halves.share == 4


def test_a_machine_that_becomes_faster_is_served_whole_batches_again() -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)
    assert server.halves.share

    server.pause = 0.000001
    server.run(spans=SOON * LEAST_PAIRS + COMPARED)

    assert not server.halves.share


@pytest.mark.parametrize("clients", [1, 16, 40])
def test_a_lone_client_and_clients_of_several_full_batches_are_not_split(clients: int) -> None:
    server = Server(per_batch=0.0001, per_job=0.001, pause=0.0001, clients=clients)

    server.run(spans=COMPARED)

    assert not server.halves.share


@pytest.mark.parametrize(("clients", "share"), [(2, 1), (3, 1), (7, 3), (12, 6), (15, 7)])
def test_half_of_the_clients_share_a_batch(clients: int, share: int) -> None:
    server = Server(per_batch=0.0001, per_job=0.001, pause=0.0001, clients=clients)

    server.run(spans=COMPARED)

    assert server.halves.share == share


def test_clients_that_come_back_are_served_at_once_as_they_were() -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)

    for clients, share in ((3, 0), (8, 4), (40, 0), (8, 4)):
        server.clients = clients
        server.back(clients, 0.001)
        assert server.halves.share == share


@pytest.mark.parametrize(("others", "share"), [(KEPT, 4), (KEPT + 1, 0)])
def test_the_latest_numbers_of_clients_are_kept(others: int, share: int) -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)
    server.told_per_batch = 0.0  # so that they are compared for any number of clients
    for clients in [2, 3, 4, 5, 6, 7, 9, 10, 11][: others - 1]:
        server.clients = clients
        server.run(spans=2)

    server.clients = 8
    server.back(8, 0.001)

    assert server.halves.share == share


def test_other_clients_are_measured_anew() -> None:
    server = Server(per_batch=0.0001, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)

    server.clients = 6
    server.back(4, 0.0005)

    assert not server.halves.share
    assert repr(server.halves) == "<Halves no of 6 clients: nothing known>"


def test_a_silence_of_the_clients_belongs_to_no_way() -> None:
    server = Server(per_batch=0.00012, per_job=0.0001, pause=0.00004)
    server.run(spans=COMPARED)
    paces = repr(server.halves)

    for _ in range(SPAN // 2):
        server.now += 0.0006
        server.back(4, 0.0005)
    server.now += PAUSE * 0.0006 + 1.0
    server.back(4, 0.0005)
    server.run()

    assert repr(server.halves) == paces == "<Halves 4 of 8 clients: 155 µs a job whole, 130 µs a job in halves>"
