"""The workloads: what is served, how it is asked, and for how long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.lab.benchmarks.models import Served, constant, resnet, tensor, texts, typed, vector


@dataclass(frozen=True, slots=True)
class Workload:
    """One model, asked in one or more ways by the same server process.

    Attributes:
        name: in options and results.
        title: in the report.
        served: makes the model and the request; called once.
        connections: of wrk, one measurement each; none for the kill.
        seconds: of each measurement.
        warm_up: seconds of load before the first one, which is thrown away.
        starts: the time to the first answer is reported.
        beside: the name of a model that is served beside it, asked in the same way; empty for none.
    """

    name: str
    title: str
    served: Callable[[], Served]
    connections: Sequence[int]
    seconds: float
    warm_up: float
    starts: bool = True
    beside: str = ""


LOADS = (
    Workload("constant", "Constant answer, 100 bytes sent", lambda: constant(100), (1, 8, 32), 5.0, 2.0),
    Workload("payload", "Constant answer, 100 kB sent", lambda: constant(100_000), (1, 8, 32), 5.0, 2.0),
    Workload("tensor", "A tensor of 600 kB, Open Inference Protocol over HTTP", tensor, (1, 8), 5.0, 2.0),
    Workload("typed", "A typed handler: 16 numbers in JSON", typed, (1, 8, 32), 5.0, 2.0),
    Workload("text", "BERT-base, questions of 19 to 249 bytes", texts, (32,), 12.0, 8.0),
    Workload("resnet18", "ResNet-18, JPEGs", lambda: resnet("resnet18"), (32,), 12.0, 5.0),
    Workload("resnet152", "ResNet-152, JPEGs", lambda: resnet("resnet152"), (32,), 25.0, 8.0),
)
CALLS = Workload("calls", "16 numbers over gRPC, on one connection", vector, (1, 8, 32), 5.0, 1.0, starts=False)
BESIDE = Workload(
    "beside", "A fast model beside a slow one", lambda: constant(100), (8,), 5.0, 2.0, starts=False, beside="slow"
)
KILL = Workload(
    "kill", "The only worker killed (-9) under 8 clients", lambda: constant(100, "brief"), (), 0.0, 0.0, starts=False
)
