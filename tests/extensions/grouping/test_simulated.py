"""Texts of various lengths, padded to the longest of their batch: batches of similar lengths, and batches by age."""

import dataclasses
import math
from functools import cache
from statistics import NormalDist, fmean

import pytest

from tests.lab.policies.loads import Closed, Poisson
from tests.lab.policies.rows import TEXTS, Row, rate
from tests.lab.policies.world import Measured, SimulatedModel
from tsctl.daemon.extensions.grouping.grouping import LengthGrouping

SEEDS = (1, 2, 3)
ALIKE = dataclasses.replace(TEXTS, choice=LengthGrouping)
REQUESTS = 3000
# A GPU whose batches of 32 are padded; a processor whose batches of 8 are padded.
MODELS = {"gpu": TEXTS, "cpu": dataclasses.replace(TEXTS, a=0.008, c=0.004, batch_size=8)}


@cache
def runs(load: Closed | Poisson, model: SimulatedModel, policy: str = "auto") -> list[Measured]:
    return [Row("", load, model).world(policy, seed).run(REQUESTS).settled() for seed in SEEDS]


def grouped(model: SimulatedModel) -> SimulatedModel:
    return dataclasses.replace(model, choice=LengthGrouping)


def gain(load: Closed | Poisson, model: SimulatedModel, policy: str = "auto", beside: str = "") -> float:
    """Return how many times as many requests a second are answered with grouping; `beside`: without it, by this one."""
    with_it, without = runs(load, grouped(model), policy), runs(load, model, beside or policy)
    return fmean(run.throughput for run in with_it) / fmean(run.throughput for run in without)


def p99(load: Closed | Poisson, model: SimulatedModel) -> float:
    return fmean(run.percentile(99) for run in runs(load, model))


@pytest.mark.heavy
@pytest.mark.parametrize(("batches", "least"), [(2, 1.4), (4, 1.5), (8, 1.5)])
@pytest.mark.parametrize("name", MODELS)
def test_clients_get_half_as_many_answers_more_and_the_p99_is_no_longer(name: str, batches: int, least: float) -> None:
    model = MODELS[name]
    load = Closed(batches * model.batch_size)

    # Not beside `auto` by age, which makes smaller batches where padding is dear.
    assert gain(load, model, beside="greedy") >= least
    assert p99(load, grouped(model)) <= p99(load, model)


@pytest.mark.heavy
@pytest.mark.parametrize("policy", ["fixed", "greedy"])
def test_the_other_policies_gain_as_much(policy: str) -> None:
    assert gain(Closed(128), TEXTS, policy) >= 1.5


@pytest.mark.heavy
@pytest.mark.parametrize("batches", [2, 4, 8])
@pytest.mark.parametrize("name", MODELS)
def test_lengths_that_hardly_differ_cost_little(name: str, batches: int) -> None:
    """The standard deviation is a fifth of the mean."""
    lengths = tuple(round(59 * math.exp(NormalDist(0.0, 0.2).inv_cdf((place + 0.5) / 100))) for place in range(100))
    model = dataclasses.replace(MODELS[name], lengths=lengths)
    load = Closed(batches * model.batch_size)

    assert gain(load, model) >= 0.99
    assert p99(load, grouped(model)) <= 1.2 * p99(load, model)


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.05, 0.2, 0.4])
def test_independent_requests_are_answered_sooner_too(load: float) -> None:
    by_age, alike = runs(Poisson(rate(load)), TEXTS), runs(Poisson(rate(load)), ALIKE)

    assert fmean(run.mean for run in alike) <= 1.01 * fmean(run.mean for run in by_age)
    assert p99(Poisson(rate(load)), ALIKE) <= 1.01 * p99(Poisson(rate(load)), TEXTS)


@pytest.mark.heavy
@pytest.mark.parametrize("clients", [1, 8, 33, 64, 128])
def test_where_all_are_of_one_length_nothing_changes(clients: int) -> None:
    model = dataclasses.replace(TEXTS, lengths=(59,))

    assert gain(Closed(clients), model, "fixed") == pytest.approx(1.0, abs=0.01)
    assert gain(Closed(clients), model) == pytest.approx(1.0, abs=0.02), "by age, `auto` has tried other sizes"
    assert p99(Closed(clients), grouped(model)) <= 1.05 * p99(Closed(clients), model)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.001])
def test_a_rare_length_does_not_starve_under_overload(share: float) -> None:
    """Of clients with short texts, one has a long one now and then: that is sent when it is the oldest."""
    lengths = (*[50] * round(1 / share), 1000)
    model = dataclasses.replace(ALIKE, lengths=lengths)
    longest = max(latency for run in runs(Closed(128), model) for _, latency in run.finished)
    by_age = max(
        latency for run in runs(Closed(128), dataclasses.replace(model, choice=None)) for _, latency in run.finished
    )

    assert longest <= 1.2 * by_age


@pytest.mark.slow
def test_no_request_is_held_beside_an_idle_worker_for_longer_than_the_delay() -> None:
    world = Row("", Poisson(rate(0.3)), dataclasses.replace(ALIKE, workers=2)).world("auto")
    world.run(REQUESTS)

    assert world.dispatcher.longest_hold <= ALIKE.max_delay + 1e-9
