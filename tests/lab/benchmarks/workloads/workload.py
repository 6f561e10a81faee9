"""The workloads: what is served, how it is asked, and for how long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.lab.benchmarks import workload_names as names
from tests.lab.benchmarks.models import Served, constant, flowers, numbers_over_grpc, resnet, tensor, text, two


@dataclass(frozen=True, slots=True)
class Workload:
    """One model, asked in one or more ways by the same server process.

    Attributes:
        name: in options and results.
        title: in the report.
        served: makes the model and the request; called once.
        connections: of wrk, or calls in flight over gRPC, one measurement each; none where the workload knows itself.
        seconds: of each measurement.
        warm_up: seconds of load before the first one, which is thrown away.
        in_process: the same work in a loop, without a server, is measured too.
    """

    name: str
    title: str
    served: Callable[[], Served]
    connections: Sequence[int]
    seconds: float
    warm_up: float
    in_process: bool = False


LOADS = (
    Workload("constant", "Constant answer, 100 bytes sent", lambda: constant(100), (1, 8, 32), 4.0, 2.0),
    Workload("payload", "Constant answer, 100 kB sent", lambda: constant(100_000), (1, 8, 32), 4.0, 2.0),
    Workload("tensor", "A tensor of 600 kB, Open Inference Protocol over HTTP", tensor, (1, 8), 4.0, 2.0),
    Workload(
        names.TYPED, "A typed handler: four numbers in JSON to a tensor, and a score back", flowers, (8,), 4.0, 2.0
    ),
    Workload(names.TEXT, "A text encoder of the size of BERT-base", text, (8,), 12.0, 4.0),
    Workload("resnet18", "ResNet-18, JPEGs", lambda: resnet("resnet18"), (32,), 12.0, 5.0, True),
    Workload("resnet152", "ResNet-152, JPEGs", lambda: resnet("resnet152"), (32,), 20.0, 6.0, True),
)
GRPC = Workload(
    names.GRPC, "16 numbers over gRPC, calls in flight over one connection", numbers_over_grpc, (1, 8, 32), 4.0, 2.0
)
BESIDE = Workload(names.BESIDE, "A fast model beside a slow one", two, (), 4.0, 1.0)
KILL = Workload(names.KILL, "The only worker killed (-9) under 8 clients", lambda: constant(100, "brief"), (), 0.0, 0.0)
