"""The plan drawn from a seed: models, traffic and faults. Times are seconds, probabilities from 0 to 1.

Values come from short lists that include the edges (0, 1, less than a batch, exactly the limit), because errors occur
there; wide ranges would rarely hit them.

The modes in which the versions' workers run requests are drawn from random numbers of their own:

    seeds up to BATCHES_ONLY    whole batches, as before there were other modes: what such a seed found once stays found
    the seeds after them        each version is drawn:

        whole batches               one process, or several (ranks)       with or without sequences
        continuous                  one process, or several               with or without sequences
        async                       one process                           with or without sequences
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tsctl.daemon.models.settings import ROWS, ModelSettings

BATCHES_ONLY = 100_000
GROUPS = "parallel_type" in ROWS  # of processes: the daemon can do without them
Model = tuple[str, str, ModelSettings]
# The faults of a run's workers. Per run: the probability that each occurs, and then its levels, which are
# probabilities per process or per batch; where rows run on their own, per step of all, or per row.
_FAULTS: dict[str, tuple[float, tuple[float, ...]]] = {
    "refused": (0.04, (0.2, 0.9)),  # the process cannot be created, at once …
    "not_born": (0.06, (0.2, 0.9)),  # … or later
    "load_fails": (0.06, (0.1, 1.0)),  # these four instead of loading
    "load_crashes": (0.10, (0.3, 0.9)),
    "load_hangs": (0.06, (0.2, 0.5)),
    "load_slow": (0.15, (0.5,)),
    "dies": (0.35, (0.02, 0.1, 0.4, 1.0)),
    "hangs": (0.15, (0.02, 0.2)),  # a row may also hang alone
    "late": (0.2, (0.3, 0.8)),  # answers after the response timeout
    "leaves": (0.05, (0.05,)),  # the handler closes the connection, and the process stays
    "confused": (0.05, (0.05, 0.3)),  # the worker violates the protocol
    "isolates": (0.15, (0.1, 0.5)),  # no harm, as the next two: the rows run alone …
    "streams": (0.20, (0.1, 0.5)),  # … answers in pieces …
    "raises": (0.10, (0.1, 0.5)),  # … errors
    "stubborn": (0.15, (0.2, 0.8)),  # the process takes long to end when killed
    "held": (0.10, (0.3,)),  # a child keeps its socket or its output open
    "deaf": (0.08, (0.5,)),  # the worker does not exit when asked
}
# Events of the daemon: the probability of each to be on a run's menu, and its weight there.
_EVENTS: dict[str, tuple[float, int]] = {
    "kill": (0.5, 6),
    "stall": (0.3, 3),
    "scale": (0.4, 3),
    "set": (0.4, 3),
    "unregister": (0.25, 2),
    "register": (0.35, 4),
    "retry": (0.2, 2),
    "default": (0.15, 1),
    "disk": (0.10, 1),
    "leave": (0.4, 5),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        models: name, version, settings.
        faults: those that occur, each with its probability.
        bursts: (time, number of requests), in order.
        low, solo, timed, patient, poison: fractions of requests with low priority, about the model itself, with a
            deadline, of clients that never disconnect, that kill their worker.
        connections: number used in turn; 0 for a new one each time.
        large: bytes of a body that may be large.
        stored: the fraction of bodies in shared memory.
        service: (a, c): a batch of n takes a + c·n.
        events: (time, kind).
        span: duration of traffic and events.
        own_handle: handlers define their own `handle`.
        pours: the probability that a batch streams much to its clients (streams.py).
        aside: each compared request is hashed in another thread, not only large ones.
        heals: after the span all faults cease and the daemon has time; else the daemon is stopped at once.
        grace: of a stop and of an unregistration.
        hurry: seconds after which a stop is hurried; 0.0 for never.
    """

    seed: int
    models: list[Model]
    service: tuple[float, float]
    load_time: float
    faults: Mapping[str, float]
    bursts: list[tuple[float, int]]
    low: float
    solo: float
    timed: float
    patient: float
    poison: float
    connections: int
    large: int
    stored: float
    events: list[tuple[float, str]]
    span: float
    heals: bool
    grace: float
    hurry: float
    own_handle: bool
    pours: float
    aside: bool


def draw_settings(chance: random.Random) -> ModelSettings:
    """Draw a version's settings."""
    pick = chance.choice
    workers = pick((1, 1, 1, 2, 2, 3))
    return ModelSettings(
        batch_size=pick((1, 2, 2, 3, 4, 8)),
        max_delay=pick((0.0, 0.005, 0.02, 0.1, 0.5)),
        policy=pick(("auto", "auto", "fixed", "greedy")),
        workers=workers,
        max_workers=workers,
        response_timeout=pick((0.05, 0.3, 1.0, 5.0, 5.0)),
        startup_timeout=pick((0.5, 3.0, 10.0)),
        queue_jobs=pick((2, 8, 100, 100, 100)),
        queue_bytes=pick((300, 3000, 1_000_000, 1_000_000)),
        queue_timeout=pick((0.0, 0.0, 0.0, 0.05, 0.3, 2.0)),
        client_timeout=pick((0.0, 0.0, 0.0, 0.5, 3.0)),
        retry=pick((None, True, True, False)),
        devices=pick(((), (), (0,), (0, 1))),
    )


def draw(seed: int) -> Plan:
    """Draw a run's plan; the same seed gives the same plan."""
    chance = random.Random(seed)
    pick, uniform, whether = chance.choice, chance.uniform, chance.random
    names = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")][: pick((1, 1, 1, 2, 2, 4))]
    quarantine = {"quarantine": random.Random(f"quarantine {seed}").random() < 0.85}
    models = [(name, version, draw_settings(chance).changed(quarantine, "set")) for name, version in names]
    span, load_time = pick((0.3, 1.0, 1.0, 3.0, 10.0)), pick((0.0, 0.05, 0.5))
    start = 0.0 if whether() < 0.2 else 1.5 * load_time + 0.05  # most runs start when the models are loaded
    faults = {name: pick(levels) for name, (likely, levels) in _FAULTS.items() if whether() < likely}
    menu = [(name, weight) for name, (likely, weight) in _EVENTS.items() if whether() < likely]
    events = []
    if menu:
        kinds, weights = [name for name, _ in menu], [weight for _, weight in menu]
        events = [
            (start + uniform(0.0, span * 1.1), kind) for kind in chance.choices(kinds, weights, k=pick((1, 3, 6, 12)))
        ]
    left, bursts = pick((10, 20, 40, 80, 120)), []
    most = pick((1, 3, 8, 16, 30))
    while left > 0:
        bursts.append((start + uniform(0.0, span), size := chance.randint(1, most)))
        left -= size
    heals = whether() < 0.6
    if not heals:
        bursts.append((start + span - uniform(0.0, 0.02), most))  # so that the stop has work to finish
    return Plan(
        seed=seed,
        models=[(name, version, with_mode(settings, seed, f"{name} {version}")) for name, version, settings in models],
        service=(pick((0.0, 0.002, 0.01, 0.03, 0.1, 0.2)), pick((0.0, 0.0005, 0.005))),
        load_time=load_time,
        faults=faults,
        bursts=sorted(bursts),
        low=pick((0.0, 0.0, 0.2, 0.5)),
        solo=pick((0.0, 0.0, 0.05)),
        timed=pick((0.0, 0.0, 0.3, 1.0)),
        patient=pick((1.0, 1.0, 0.8, 0.3)),
        poison=pick((0.0, 0.0, 0.0, 0.02, 0.2)),
        connections=pick((0, 1, 3, 10)),
        large=pick((0, 50, 400)),
        stored=random.Random(f"bodies {seed}").choice((0.0, 0.1, 0.5, 1.0)),
        events=sorted(events),
        span=start + span,
        heals=heals,
        grace=pick((0.0, 0.3, 5.0, 30.0)),
        hurry=pick((0.0, 0.0, 0.0, 0.1, 1.0)),
        own_handle=whether() < 0.3,
        pours=random.Random(f"pour {seed}").choice((0.0, 0.0, 0.0, 0.0, 0.3, 0.9)),
        aside=random.Random(f"aside {seed}").random() < 0.5,
    )


def with_mode(settings: ModelSettings, seed: int, what: str) -> ModelSettings:
    """Return settings with a mode that is drawn for this model, or this archive of it."""
    if seed <= BATCHES_ONLY:
        return settings
    chance = random.Random(f"mode {seed} {what}")
    pick = chance.choice
    mode = pick(("batch", "continuous", "continuous", "async"))
    values: dict[str, Any] = {
        "continuous": mode == "continuous", "asynchronous": mode == "async", "sequences": False,
    }  # fmt: skip
    if chance.random() < (0.7 if mode == "batch" else 0.4):
        values |= {
            "sequences": True,
            "sequence_idle": pick((0.0, 0.02, 0.3, 300.0)),
            "sequence_timeout": pick((0.0, 0.0, 0.3, 3.0)),
            "max_sequences": pick((1, 3, 100)),
            "sequence_jobs": pick((1, 3, 100, 100)),
        }
    if GROUPS:
        values["parallel_type"] = ""
    # Two ranks need two GPUs, or none.
    if GROUPS and mode != "async" and len(settings.devices) != 1 and chance.random() < 0.25:
        values |= {"parallel_type": pick(("tp", "pp")), "parallel_level": 2}
    return settings.changed(values, "archive")


def words_of(settings: ModelSettings) -> str:
    """Return what was drawn for a version, and is no default, for the story."""
    values = {name: getattr(settings, name) for name in ROWS}
    return ", ".join(f"{name} {value}" for name, value in values.items() if value != ROWS[name].default)
