"""`auto`: a batch is held only where holding pays, at most once, and never beyond the maximum delay."""

import math
from typing import Any

import pytest

from tsctl.daemon.batching.policies.auto import Auto, at_least
from tsctl.daemon.batching.policies.collector import Facts, Send, Wait, latest
from tsctl.daemon.batching.traffic.callers import Survival
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.job import Batch, Caller, Job

DELAY = 0.1


class AutoUnderTraffic:
    """The collector `auto` and its traffic, with short ways to make things happen."""

    def __init__(self, batch_size: int = 8, max_delay: float = DELAY) -> None:
        self.traffic = Traffic(batch_size)
        self.collector = Auto(batch_size, max_delay, self.traffic)
        self.waiting: list[Job] = []
        self.now = 100.0

    def arrive(self, *callers: Caller, at: float | None = None) -> None:
        self.now = self.now if at is None else at
        for caller in callers:
            job = Job("", (), (), self.now, lambda reply: None, caller=caller)
            self.traffic.arrived(job)
            self.waiting.append(job)

    def serve(self, seconds: float = 0.0084, count: int | None = None) -> None:
        """Send what waits, and have it answered."""
        jobs = self.waiting[:count]
        del self.waiting[: len(jobs)]
        for job in jobs:
            self.traffic.callers.taken(job)
            job.send()
        self.now += seconds
        self.traffic.returned(Batch(1, jobs, "full", self.now - seconds), seconds, self.now)
        for job in jobs:
            self.traffic.callers.ended(job, self.now)

    def learn(self, a: float = 0.008, c: float = 0.0004) -> None:
        for size in (1, 8, 1, 8):
            self.traffic.times.learn_batch(size, a + c * size)

    def loop(self, callers: list[Caller], turns: int = 20, turnaround: float = 0.001, a: float = 0.008) -> None:
        """Let clients come back and be served together again and again."""
        for _ in range(turns):
            for caller in callers:
                self.arrive(caller, at=self.now + turnaround / len(callers))
            self.serve(a + 0.0004 * len(callers))

    def decide(self, **facts: Any) -> Send | Wait:
        values: dict[str, Any] = {"waiting": len(self.waiting), "idle": 1} | facts
        return self.collector.decide(Facts(**values), self.now)


def test_a_whole_batch_goes_at_once() -> None:
    bench = AutoUnderTraffic(batch_size=2)
    bench.arrive(Caller(), Caller(), Caller())

    assert bench.decide() == Send(2, "full")


@pytest.fixture
def bench() -> AutoUnderTraffic:
    return AutoUnderTraffic()


def test_half_of_the_clients_go_at_once_if_that_was_found_to_be_faster(bench: AutoUnderTraffic) -> None:
    assert bench.traffic.halves is not None
    bench.traffic.halves.share = 4
    bench.arrive(*(Caller() for _ in range(5)))

    assert bench.decide() == bench.decide(waiting=4) == Send(4, "half")
    assert bench.decide(waiting=8) == Send(8, "full")


def test_halves_are_of_an_only_workers_clients(bench: AutoUnderTraffic) -> None:
    assert bench.traffic.halves is not None
    bench.traffic.halves.share = 4
    bench.arrive(*(Caller() for _ in range(5)))

    bench.decide(idle=2)

    assert not bench.traffic.halves.share


def test_a_newcomers_single_request_never_waits(bench: AutoUnderTraffic) -> None:
    bench.arrive(Caller())

    assert bench.decide() == Send(1, "nobody_left")


def test_the_first_burst_after_a_start_is_held_as_fixed_would(bench: AutoUnderTraffic) -> None:
    bench.arrive(Caller(), Caller())

    assert bench.decide() == Wait(bench.now + DELAY)
    assert bench.decide(held=99.96) == Wait(99.96 + DELAY)


def test_the_first_requests_are_held_if_two_come_within_the_delay_on_connections_of_their_own() -> None:
    bench, first, second = AutoUnderTraffic(), Caller(), Caller()
    bench.arrive(first)
    bench.serve(0.0)
    first.close()
    bench.traffic.times.known = False

    bench.arrive(second, at=bench.now + DELAY / 2)
    assert bench.decide() == Wait(bench.now + DELAY)
    second.close()
    bench.arrive(Caller(), at=bench.now + 3 * DELAY)
    assert isinstance(bench.decide(waiting=1), Send)
    bench.arrive(Caller(), at=bench.now + 3 * DELAY)  # the one before is still there

    assert isinstance(bench.decide(waiting=1), Wait)


def test_one_kept_alive_client_never_waits() -> None:
    bench, caller = AutoUnderTraffic(), Caller()
    bench.learn()
    bench.arrive(caller)
    bench.serve()

    for _ in range(20):
        bench.arrive(caller, at=bench.now + 0.001)
        assert bench.decide() == Send(1, "nobody_left")
        bench.serve()


def test_a_client_that_pipelines_is_one_client() -> None:
    bench, caller = AutoUnderTraffic(), Caller()
    bench.learn()
    bench.arrive(caller, caller, caller)

    assert bench.decide() == Send(3, "nobody_left")


def test_the_clients_of_the_last_batch_are_waited_for(bench: AutoUnderTraffic) -> None:
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers)

    bench.arrive(callers[0], at=bench.now + 0.0003)
    decision = bench.decide()

    assert isinstance(decision, Wait) and bench.now + 0.001 <= decision.until < bench.now + 0.01


def test_the_last_of_them_is_waited_for_as_well_and_for_no_longer_than_was_decided_first(
    bench: AutoUnderTraffic,
) -> None:
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers)

    bench.arrive(*callers[:3], at=bench.now + 0.0003)
    first = bench.decide()
    assert isinstance(first, Wait) and first.until > bench.now
    bench.now = first.until - 0.0001

    assert bench.decide() == first


@pytest.mark.parametrize("ends", ["sent", "left"])
def test_but_not_once_those_who_waited_were_sent_or_have_left(ends: str, bench: AutoUnderTraffic) -> None:
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers)
    bench.arrive(*callers[:3], at=bench.now + 0.0003)
    first = bench.decide()
    assert isinstance(first, Wait)

    if ends == "sent":
        assert bench.decide(stopping=True) == Send(3, "stopping")
    else:
        bench.collector.drained()

    bench.now = first.until - 0.0001
    assert bench.decide() != first


@pytest.mark.parametrize(("saved", "waits"), [(0.0078, True), (0.0072, False)])
def test_a_client_is_waited_for_if_its_mean_time_is_less_than_joining_saves(
    saved: float, waits: bool, bench: AutoUnderTraffic
) -> None:
    bench.learn(a=saved)
    callers = [Caller(), Caller()]
    bench.loop(callers, a=saved)
    bench.arrive(callers[0])

    bench.traffic.gaps = bench.traffic.turnarounds = Survival()
    bench.traffic.turnarounds.add_time(0.008)  # its bucket is from 5.8 to 9.2 ms, and 7.5 in the mean

    assert isinstance(bench.decide(), Wait) == waits


def test_of_those_who_are_away_no_more_are_waited_for_than_have_room(bench: AutoUnderTraffic) -> None:
    bench.learn()
    callers = [Caller() for _ in range(8)]
    bench.loop(callers)
    for number in range(1, 400):
        bench.traffic.turnarounds.add_time(0.02 * number / 400)
    bench.arrive(*callers[:3], at=bench.now + 0.0001)  # five are away: one soon comes, but not two

    bench.decide()
    bench.collector.drained()
    assert bench.decide(waiting=6) == Send(6, "no_gain")
    assert isinstance(bench.decide(waiting=7), Wait)


def test_and_the_batch_goes_when_the_last_of_them_is_back(bench: AutoUnderTraffic) -> None:
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers)

    bench.arrive(*callers, at=bench.now + 0.001)

    assert bench.decide() == Send(4, "nobody_left")


def test_clients_that_take_longer_than_a_batch_saves_are_not_waited_for() -> None:
    bench = AutoUnderTraffic(max_delay=10.0)
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers, turnaround=0.2)

    bench.arrive(callers[0], at=bench.now + 0.05)

    assert bench.decide() == Send(1, "no_gain")


def test_a_poller_that_comes_now_and_then_is_not_waited_for() -> None:
    bench, client, poller = AutoUnderTraffic(), Caller(), Caller()
    bench.learn()
    bench.arrive(poller)
    bench.serve()
    bench.arrive(poller, at=bench.now + 0.1)
    bench.serve()
    for _ in range(300):
        bench.arrive(client, at=bench.now + 0.001)
        bench.serve()

    bench.arrive(client, at=bench.now + 0.001)

    assert bench.decide() == Send(1, "nobody_left")


def test_a_small_fixed_cost_is_not_worth_a_timer(bench: AutoUnderTraffic) -> None:
    callers = [Caller() for _ in range(4)]
    bench.loop(callers, a=0.0015)

    bench.arrive(callers[0], at=bench.now + 0.0003)
    bench.decide()

    assert bench.decide() == Send(1, "no_gain")


def test_input_that_is_there_is_read_while_it_brings_more(bench: AutoUnderTraffic) -> None:
    """Of a small fixed cost, too: that takes no time but the reading's."""
    callers = [Caller() for _ in range(4)]
    bench.loop(callers, a=0.0015)

    for caller in callers[:3]:
        bench.arrive(caller, at=bench.now + 0.00002)
        assert bench.decide() == Wait(bench.now)

    assert bench.decide() == Send(3, "no_gain")


@pytest.mark.parametrize("ends", ["sent", "left"])
def test_input_is_read_first_again_after_those_who_waited_were(ends: str, bench: AutoUnderTraffic) -> None:
    callers = [Caller() for _ in range(4)]
    bench.loop(callers, a=0.0015)
    bench.arrive(callers[0])
    assert bench.decide() == Wait(bench.now)

    if ends == "sent":
        assert bench.decide() == Send(1, "no_gain")
    else:
        bench.collector.drained()

    assert bench.decide() == Wait(bench.now)


def test_input_is_not_read_first_where_nobody_is_to_come_back(bench: AutoUnderTraffic) -> None:
    bench.learn(a=0.0015)
    stranger = Caller()
    stranger.close()

    bench.arrive(stranger)

    assert bench.decide() == Send(1, "no_gain")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        pytest.param({"held": 100.0 - DELAY}, "delay", id="held for the maximum delay"),
        pytest.param({"stopping": True}, "stopping", id="being stopped"),
        pytest.param({"deadline": 100.019}, "deadline", id="a deadline is near"),
    ],
)
def test_what_ends_a_hold(facts: dict[str, Any], reason: str, bench: AutoUnderTraffic) -> None:
    bench.learn(a=0.016)
    bench.now = 100.0
    bench.arrive(Caller(), Caller())

    assert bench.decide(**facts) == Send(2, reason)


def test_a_deadline_ends_a_hold_at_the_latest_moment_that_meets_it(bench: AutoUnderTraffic) -> None:
    bench.learn(a=0.016)
    bench.arrive(Caller(), Caller())
    bench.now = latest(Facts(2, 1, deadline=100.05), bench.traffic.times)

    assert bench.decide(deadline=100.05) == Send(2, "deadline")


def test_no_delay_is_no_wait() -> None:
    bench = AutoUnderTraffic(max_delay=0.0)
    bench.arrive(Caller(), Caller())

    assert bench.decide() == Send(2, "delay")


def test_a_hold_ends_with_the_maximum_delay() -> None:
    bench = AutoUnderTraffic(max_delay=0.004)
    bench.learn()
    callers = [Caller() for _ in range(4)]
    bench.loop(callers, turnaround=0.006)

    bench.arrive(callers[0], at=bench.now + 0.0015)

    held = bench.now - 0.002
    assert bench.decide(held=held) == Wait(held + 0.004)


def test_several_idle_workers_take_even_shares_until_batch_times_are_known(bench: AutoUnderTraffic) -> None:
    bench.arrive(*[Caller() for _ in range(5)])

    assert bench.decide(idle=2) == Send(5, "split", over=2)
    assert bench.decide(idle=9) == Send(5, "split", over=5)


@pytest.mark.parametrize(
    ("c", "gap", "decision"),
    [
        pytest.param(0.004, 0.01, Send(8, "split", over=2), id="each job costs much: two workers halve it"),
        pytest.param(0.0001, 0.01, Send(8, "full"), id="each job costs little, and others need the second worker soon"),
        pytest.param(0.0001, 0.1, Send(8, "split", over=2), id="nobody else needs it soon"),
    ],
)
def test_afterwards_a_batch_of_strangers_is_cut_where_that_is_faster(
    c: float, gap: float, decision: Send, bench: AutoUnderTraffic
) -> None:
    bench.learn(c=c)
    for _ in range(8):
        bench.arrive(Caller(), at=bench.now + gap)

    assert bench.decide(idle=2) == decision


@pytest.mark.parametrize(
    ("busy", "facts", "decision"),
    [
        pytest.param(1, {}, Send(3, "split"), id="half stay for the only other worker"),
        pytest.param(3, {}, Send(2, "split"), id="more stay for three others"),
        pytest.param(3, {"gap": 0.003}, Send(3, "split"), id="fewer where two arrive for each during a batch"),
        pytest.param(3, {"deadline": 100.0}, Send(6, "deadline"), id="those at their deadline do not stay"),
        pytest.param(3, {"deadline": 100.76}, Send(6, "no_gain"), id="nor do those with no time for another batch"),
        pytest.param(3, {"deadline": 200.0}, Send(2, "split"), id="those that have time do"),
        pytest.param(0, {}, Send(6, "no_gain"), id="there is no other worker"),
    ],
)
def test_an_only_idle_worker_leaves_strangers_to_those_that_are_idle_next(
    busy: int, facts: dict[str, Any], decision: Send, bench: AutoUnderTraffic
) -> None:
    bench.learn(c=0.004)
    others = dict(facts)
    gap = others.pop("gap", 0.1)
    for _ in range(7):
        bench.arrive(Caller(), at=bench.now + gap)
    if busy:
        bench.traffic.sent(Batch(7, [bench.waiting.pop()], "no_gain", bench.now), busy, bench.now)
    else:
        bench.waiting.pop()

    assert bench.decide(**others) == decision


def of_several(
    workers_share_cores: bool, *, learn: bool = True, clients: int = 8
) -> tuple[AutoUnderTraffic, list[Caller]]:
    """Regular clients of two workers, who all have a job here; 50 ms + 10 ms a job."""
    bench, callers = AutoUnderTraffic(), [Caller() for _ in range(clients)]
    for caller in callers:
        bench.arrive(caller, at=bench.now + 0.0001)
        bench.serve(0.0)
    bench.learn(0.05, 0.01)
    if learn:
        for _ in range(40):
            bench.traffic.together.learn_batch(1, 8, 0.130)
            bench.traffic.together.learn_batch(2, 4, 0.180 if workers_share_cores else 0.090)
    bench.arrive(*callers, at=bench.now + 0.001)
    return bench, callers


@pytest.mark.parametrize(
    ("workers_share_cores", "clients", "decision"),
    [
        pytest.param(False, 8, Send(8, "split", over=2), id="over the workers"),
        pytest.param(False, 5, Send(5, "split", over=2), id="an odd number as well"),
        pytest.param(True, 8, Send(8, "full"), id="but not where the workers share cores"),
    ],
)
def test_clients_that_are_all_here_are_cut(workers_share_cores: bool, clients: int, decision: Send) -> None:
    bench, _ = of_several(workers_share_cores, clients=clients)

    assert bench.decide(idle=2) == decision


def test_of_those_whose_hold_ends_a_share_goes_to_a_worker_and_the_next_one_stays_for_the_others() -> None:
    bench, _ = of_several(workers_share_cores=False)

    assert bench.decide(idle=2, waiting=5, held=bench.now - DELAY) == Send(4, "split")


def test_clients_count_with_each_request_where_they_send_several_at_once() -> None:
    bench, callers = of_several(workers_share_cores=False)
    bench.traffic.sent(Batch(7, bench.waiting, "full", bench.now), 1, bench.now)
    bench.waiting.clear()
    bench.arrive(*callers)

    assert bench.decide(idle=1) == Send(8, "full")


def test_a_batch_that_came_about_as_planned_was_not_missed() -> None:
    bench, callers = of_several(workers_share_cores=True)
    for _ in range(40):
        bench.traffic.together.learn_batch(2, 8, 0.260)
    bench.traffic.sent(Batch(7, bench.waiting, "full", bench.now), 1, bench.now)
    bench.arrive(*callers)
    before = bench.traffic.together.changes

    assert bench.decide(idle=1, waiting=8) == Send(8, "full")
    assert bench.traffic.together.changes == before
    assert bench.decide(idle=1, waiting=7, held=bench.now - DELAY) == Send(7, "delay")
    assert bench.traffic.together.changes == before + 1


def test_a_second_worker_that_only_slows_the_first_is_not_used_and_its_clients_are_joined() -> None:
    bench, _ = of_several(workers_share_cores=True)
    bench.traffic.sent(Batch(7, bench.waiting[:5], "nobody_left", bench.now), 1, bench.now)
    del bench.waiting[:5]

    assert bench.decide(idle=1) == Wait(bench.now + DELAY)
    assert bench.decide(idle=1, held=bench.now - DELAY) == Send(3, "delay")


def test_as_many_as_shall_travel_together_wait_for_nobody_else() -> None:
    bench, callers = of_several(workers_share_cores=False)
    for job in bench.waiting[4:]:
        bench.traffic.callers.ended(job, bench.now)  # they are on their way back
    del bench.waiting[4:]

    assert len(callers) == 8
    assert bench.decide(idle=2) == Send(4, "split")
    assert bench.traffic.best is not None and bench.traffic.best.share == 4  # what a whole batch is now
    assert bench.decide(idle=2, waiting=3) != Send(3, "nobody_left")


def test_of_more_than_their_share_the_others_wait_for_the_next_worker() -> None:
    bench, _ = of_several(workers_share_cores=False)
    bench.traffic.sent(Batch(7, bench.waiting[:2], "nobody_left", bench.now), 1, bench.now)
    del bench.waiting[:2]

    assert bench.decide(idle=1) == Send(4, "split")


def test_the_clients_of_a_worker_that_is_alone_now_are_those_of_its_last_batch() -> None:
    bench, callers = of_several(workers_share_cores=False)
    bench.decide(idle=2)
    bench.serve(0.05)
    bench.traffic.missing = 0
    bench.arrive(*callers[:2], at=bench.now + 0.001)
    alone = Auto(8, DELAY, bench.traffic).decide(Facts(2, 1), bench.now)

    assert bench.decide(idle=1) == alone


def held_for_a_client(*, running: int) -> float:
    """Return how long one waits of three clients of two workers: one has several jobs running, and one is away."""
    bench, (first, second, _) = of_several(workers_share_cores=False, clients=3)
    bench.serve(0.05)
    for _ in range(200):
        for seconds in (0.002, *[1.0] * 9):
            bench.traffic.turnarounds.add_time(seconds)
    bench.arrive(*[first] * running, at=bench.now + 0.001)
    bench.traffic.sent(Batch(7, list(bench.waiting), "full", bench.now), 1, bench.now)
    for job in bench.waiting:
        bench.traffic.callers.taken(job)
        job.send()
    bench.waiting.clear()
    bench.arrive(second, at=bench.now + 0.0001)
    decision = bench.decide(idle=1)
    assert isinstance(decision, Wait)
    return decision.until - bench.now


def test_of_several_workers_clients_those_that_are_away_are_waited_for_however_many_have_room() -> None:
    assert held_for_a_client(running=5) == held_for_a_client(running=3) > 0.0


def test_what_was_never_tried_is_tried() -> None:
    bench, _ = of_several(workers_share_cores=False, learn=False)
    bench.traffic.together.learn_batch(2, 4, 0.090)

    assert bench.decide(idle=2) == Send(8, "full")


def test_a_burst_is_waited_for_while_its_next_request_is_likely() -> None:
    bench = AutoUnderTraffic(batch_size=32)
    bench.learn()
    for _ in range(60):
        for gap in (0.3, 0.0015, 0.0015):
            caller = Caller()
            bench.arrive(caller, at=bench.now + gap)
            caller.close()
        bench.serve(0.0092)

    bench.arrive(Caller(), at=bench.now + 0.28)
    assert isinstance(bench.decide(), Wait), "two more come soon"

    bench.now += 0.1
    assert bench.decide() == Send(1, "no_gain"), "they did not come"


@pytest.mark.parametrize("rate", [5.0, 50.0, 200.0])
def test_independent_arrivals_are_never_waited_for(rate: float) -> None:
    bench = AutoUnderTraffic(batch_size=32)
    bench.learn()
    at = bench.now
    for step in range(400):
        at += -math.log(((step * 0.618034) % 1.0) or 0.5) / rate  # exponential gaps, without chance
        bench.arrive(Caller(), at=at)
        if len(bench.waiting) < 32:
            assert isinstance(bench.decide(), Send)
        bench.serve(0.0, count=len(bench.waiting))
        bench.traffic.times.spread = True
        bench.traffic.times.per_batch, bench.traffic.times.per_job = 0.008, 0.0004


@pytest.mark.parametrize(("count", "clients", "come", "chance"), [
    (3, 3, 0.5, 0.125), (1, 3, 0.5, 0.875), (2, 3, 0.5, 0.5), (2, 4, 1.0, 1.0), (1, 5, 0.0, 0.0),
    (198, 200, 0.98, 0.2351), (20, 1000, 0.02, 0.5306), (500, 1000, 0.9, 1.0), (500, 1000, 0.1, 0.0),
    (477, 1000, 0.5, 0.9314),
])  # fmt: skip
def test_the_chance_that_enough_of_the_clients_have_come(count: int, clients: int, come: float, chance: float) -> None:
    assert at_least(count, clients, come) == pytest.approx(chance, abs=1e-4)
