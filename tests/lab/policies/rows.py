"""The traffic under which the policies are compared: one table row each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from tests.lab.lengths import QUESTIONS
from tests.lab.policies.loads import Bursts, Churn, Closed, Diurnal, Load, Modulated, Poisson, Recorded, far
from tests.lab.policies.rules import make_rule
from tests.lab.policies.world import Measured, SimulatedModel, World
from tests.places import ROOT

POLICIES = ("greedy", "torchserve", "triton", "bentoml", "auto")
MODEL = SimulatedModel()
CPU_LIKE = SimulatedModel(a=0.006, c=0.024, batch_size=8, max_delay=0.050)
TINY = SimulatedModel(a=0.0015, c=0.00005)
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of traffic on one model.

    Attributes:
        open: arrivals do not wait for responses, so the measure is latency, not throughput.
        beside: the traffic of a second model of the same kind on the same processor.
    """

    name: str
    load: Load
    model: SimulatedModel = MODEL
    beside: Load | None = None
    requests: int = 6000

    @property
    def open(self) -> bool:
        return not isinstance(self.load, (Closed, Churn))

    def run(self, policy: str, seed: int = 1) -> Measured:
        """Run one policy under this traffic; the first tenth is discarded."""
        return self.world(policy, seed).run(self.requests).settled()

    def world(self, policy: str, seed: int = 1) -> World:
        """Return the world with its load started."""
        world = World(self.model, partial(make_rule, policy), seed)
        if self.beside is not None:
            self.beside.start(World(self.model, partial(make_rule, policy), seed + 100, beside=world))
        self.load.start(world)
        return world


def rate(share: float, model: SimulatedModel = MODEL) -> float:
    """Return the arrivals per second that use this share of one worker's capacity in full batches."""
    return share * model.batch_size / (model.a + model.c * model.batch_size)


def _with(model: SimulatedModel = MODEL, **changes: Any) -> SimulatedModel:
    values = {name: getattr(model, name) for name in SimulatedModel.__dataclass_fields__}
    return SimulatedModel(**values | changes)


_EIGHT = _with(batch_size=8)
_TWO = _with(workers=2)
TEXTS = _with(lengths=QUESTIONS)
# A recorded trace: two periodic callers, one of them in pairs.
_TRACE = tuple(sorted([*(0.05 * i for i in range(200)), *(0.033 * i + d for i in range(300) for d in (0.0, 0.004))]))

# What extensions do for texts, in files named policy_rows.py: the name of a row, and the changes of the model.
OF_TEXTS: list[tuple[str, dict[str, Any]]] = [
    import_module(f"tests.extensions.{file.parent.name}.policy_rows").OF_TEXTS
    for file in sorted((ROOT / "tests/extensions").glob("*/policy_rows.py"))
]


def _extended(*rows: Row) -> Iterator[Row]:
    """Yield rows, and after each of texts those of extensions."""
    for row in rows:
        yield row
        for name, changes in OF_TEXTS if row.model.lengths else ():
            yield replace(row, name=name, model=_with(row.model, **changes))


CLOSED: Sequence[Row] = tuple(_extended(
    Row("1 client", Closed(1)),
    Row("2 clients", Closed(2)),
    Row("7 clients, batch 8", Closed(7), _EIGHT),
    Row("8 clients, batch 8", Closed(8), _EIGHT),
    Row("9 clients, batch 8", Closed(9), _EIGHT),
    Row("8 clients", Closed(8)),
    Row("33 clients", Closed(33)),
    Row("64 clients", Closed(64)),
    Row("8 clients, a connection a request", Closed(8, kept=False)),
    Row("8 clients, far away", Closed(8, far)),
    Row("clients come and go, 2 to 12", Churn([(1.0, 2), (1.0, 12), (1.0, 5), (1.0, 8)])),
    Row("8 clients, then 1", Churn([(2.0, 8), (2.0, 1)])),
    Row("8 clients, beside another model's 8", Closed(8), beside=Closed(8)),
    Row("2 workers, 2 clients", Closed(2), _TWO),
    Row("2 workers, 8 clients", Closed(8), _TWO),
    Row("2 workers, 33 clients", Closed(33), _TWO),
    Row("2 workers, 8 clients, CPU-like", Closed(8), _with(CPU_LIKE, workers=2)),
    Row("the same, a connection a request", Closed(8, kept=False), _with(CPU_LIKE, workers=2)),
    Row("8 clients, tiny model", Closed(8), TINY),
    Row("64 clients, texts", Closed(64), TEXTS),
    Row("128 clients, texts", Closed(128), TEXTS),
))  # fmt: skip
OPEN: Sequence[Row] = tuple(_extended(
    *(Row(f"Poisson, load {share:g}", Poisson(rate(share))) for share in (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)),
    Row("load .1 and .95 in turn, 0.2 s each", Modulated((rate(0.1), rate(0.95)), dwell=0.2)),
    Row("a day in 20 s, load 0 to .9", Diurnal(0.0, rate(0.9), period=20.0)),
    Row("3 calls in 5 ms, every 300 ms", Bursts(3, 0.005, 0.3)),
    Row("8 curls in 24 ms, every second, delay 100 ms", Bursts(8, 0.024, 1.0), _with(max_delay=0.1)),
    Row("a recorded trace", Recorded(_TRACE)),
    Row("Poisson, load .3, CPU-like", Poisson(rate(0.3, CPU_LIKE)), CPU_LIKE),
    Row("Poisson, load .4, texts", Poisson(rate(0.4)), TEXTS),
    Row("Poisson, load .3, beside the same", Poisson(rate(0.3)), beside=Poisson(rate(0.3))),
))  # fmt: skip
OVERLOAD = Row("Poisson, load 1.1", Poisson(rate(1.1)))
