"""Models that take declared tensors of one datatype, `x`, and answer with them."""

from tests.e2e.served import Served

CONFIG = """
batchSize: 4
maxBatchDelay: 0
inputs: [{{name: x, datatype: {datatype}, shape: [-1]}}]
outputs: [{{name: x, datatype: {datatype}, shape: [-1]}}, {{name: intact, datatype: BOOL, shape: [1]}}]
"""


SEQUENCES = """
sequenceBatching: true
maxNumSequence: 8
maxSequenceJobQueueSize: 8
batchSize: 4
inputs: [{name: x, datatype: INT32, shape: [1]}]
outputs: [{name: n, datatype: INT32, shape: [1]}]
"""


def register_beside(served: Served) -> None:
    """Register a model with sequences, one that answers in pieces, and one with two inputs."""
    served.register("steps", config=SEQUENCES)
    for name in ("pieces", "lengths"):
        served.register(name)


def register(served: Served, datatype: str, name: str = "") -> str:
    """Register the model of a datatype, and return its name."""
    name = name or f"x-{datatype.lower()}"
    served.register("tensors", name=name, config=CONFIG.format(datatype=datatype))
    return name
