"""What model-config.yaml declares of a typed handler's arguments, and what contradicts them."""

from pathlib import Path

import pytest

from tests.handlers.samples import write
from tests.handlers.test_worker import converse, load_of
from tsctl.handlers import wire

HANDLER = """
    import numpy
    def predict(text: str, vector: numpy.ndarray) -> str:
        return text
"""


def loaded(model_dir: Path, inputs: str) -> wire.ToDaemon:
    write(model_dir / "mine.py", HANDLER)
    (model_dir / "model-config.yaml").write_text(f"inputs: [{inputs}]\n")
    load = load_of(model_dir)
    load.manifest = {"model": {"configFile": "model-config.yaml"}}
    _, said = converse([load])
    return said[-1]


@pytest.mark.parametrize(
    "inputs",
    [
        "{name: text, datatype: BYTES, shape: [1]}",
        "{name: vector, datatype: FP32, shape: [-1]}",
        "{name: text, datatype: BYTES, shape: [1]}, {name: vector, datatype: INT64, shape: [2, 3]}",
    ],
)
def test_what_fits_is_loaded(model_dir: Path, inputs: str) -> None:
    assert isinstance(loaded(model_dir, inputs), wire.Loaded)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (
            "{name: texts, datatype: BYTES, shape: [1]}",
            "declares the input `texts`, and the function has no such argument: it takes `text`, `vector`",
        ),
        (
            "{name: vector, datatype: BYTES, shape: [1]}",
            "as BYTES, and the function's argument `vector: ndarray` is made of a datatype of numbers",
        ),
        (
            "{name: text, datatype: INT8, shape: [-1]}",
            "as INT8, and the function's argument `text: str` is made of BYTES",
        ),
    ],
)
def test_a_contradiction_fails_the_load_and_names_both_sides(model_dir: Path, inputs: str, says: str) -> None:
    failed = loaded(model_dir, inputs)

    assert isinstance(failed, wire.LoadFailed)
    assert says in failed.error
    assert "or remove `inputs`" in failed.error
    assert failed.traceback == failed.error
