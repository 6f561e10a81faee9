"""A large request that is compared is parked while it is hashed aside: others pass it, and all limits hold."""

from typing import Any

import pytest

from tests.extensions.quarantine.poisoned import LARGE, SMALL, PoisonedVersion, hashed
from tsctl.daemon.core.fingerprint import AT_ONCE
from tsctl.daemon.core.job import JobPhase, Reply
from tsctl.daemon.extensions.quarantine import quarantine

__all__ = ["hashed"]  # a fixture


class Parked(PoisonedVersion):
    """A large request is as large as a suspect, and waits for another thread."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.ask("bad", LARGE)
        self.crash()
        self.clock.held = []


def test_while_a_large_one_is_hashed_others_pass_it_and_it_is_not_sent() -> None:
    bench = Parked()
    bench.ask("large", LARGE)
    bench.ask("small", b"w")
    assert bench.batches[1:] == ["small"] and bench.model.waiting == 1 and not bench.model.idle

    bench.clock.release()
    bench.clock.advance(1.0)

    assert bench.batches[1:] == ["small", "large"]


def test_one_that_is_no_suspect_takes_its_place_by_the_time_that_it_came() -> None:
    bench = Parked(batch_size=4)
    bench.ask("running", b"w")
    bench.ask("large", b"x" * len(LARGE))
    bench.clock.advance(0.1)
    bench.ask("later", b"w")

    bench.clock.release()
    bench.clock.advance(1.0)

    assert bench.batches[-1] == "large later"


def test_the_queue_timeout_holds_for_one_that_comes_back_unbegun_and_is_the_only_one() -> None:
    bench = PoisonedVersion(workers=2, queue_timeout=2.0)
    hanging, crashing = bench.workers
    bench.ask("good", b"words")
    bench.ask("bad", LARGE)
    ahead, waiting = bench.submit("bad-2", LARGE), bench.submit("good-2", b"words")
    bench.clock.settle()
    assert ahead.phase is JobPhase.SENT
    bench.model.abandon(waiting)
    crashing.crash(retry=False)
    bench.clock.held = []

    hanging.hang(Reply(500, b"late"), retry=False)
    bench.clock.advance(2.1)

    assert bench.client.reply("bad-2").status == 504


def test_what_arrives_while_the_dead_is_hashed_is_compared_when_that_is_known() -> None:
    bench = PoisonedVersion()
    bench.prove(LARGE)
    bench.model.retry()
    bench.clock.advance(6.0)
    bench.ask("first", LARGE)
    bench.clock.held = []
    bench.worker.crash(retry=False)
    bench.clock.advance(6.0)

    bench.ask("second", LARGE)
    assert bench.batches[-1] == "first", "it waits for the comparison"
    bench.clock.release()
    bench.clock.settle()

    assert bench.batches[-1] == "second" and bench.dispatcher.reasons["suspect"] == 2


def test_what_was_hashed_for_a_table_that_was_cleared_counts_no_more() -> None:
    bench = PoisonedVersion()
    bench.ask("first", LARGE)
    bench.clock.held = []
    bench.worker.crash(retry=False)

    bench.model.retry()
    bench.clock.release()
    bench.clock.advance(6.0)

    assert not (bench.quarantine.watching or bench.quarantine.suspects or bench.quarantine._pending)


def test_a_turn_of_the_loop_hashes_no_more_than_a_mebibyte(hashed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = PoisonedVersion(batch_size=200, queue_bytes=10**8)
    for number in range(100):
        bench.submit(f"r{number}", b"%05d" % number * (AT_ONCE // 5))
    bench.clock.settle()
    bench.clock.held = []

    bench.worker.crash(retry=False)

    assert 900_000 < sum(hashed) <= quarantine.MOST_AT_ONCE
    bench.clock.release()
    bench.clock.settle()
    assert len(hashed) == 100 == len(bench.quarantine.suspects) and not bench.quarantine._pending
    assert bench.quarantine.compare_at_once(bench.client.job("next", b"x" * AT_ONCE)), "another turn hashes as much"


def test_the_one_that_has_waited_longest_is_the_first_of_the_suspects_whatever_its_lane_was() -> None:
    bench = PoisonedVersion(queue_timeout=10.0)
    bench.ask("bad")
    for name, low in (("low", True), ("normal", False), ("normal-2", False)):
        bench.ask(name, SMALL, low_priority=low)
        bench.clock.advance(0.01)

    bench.worker.crash(retry=False)

    lane = bench.model.queue._apart
    assert [job.id for job in lane] == ["low", "normal", "normal-2"]
