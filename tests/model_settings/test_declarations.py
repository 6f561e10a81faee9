"""Declared tensors: what model-config.yaml may say, and what is said about everything else."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.model_settings.declarations import DATATYPES, Declarations, DeclaredTensor
from tsctl.daemon.models.settings import Overrides, merge

INPUT: dict[str, Any] = {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]}


@pytest.mark.parametrize("datatype", DATATYPES)
def test_a_tensor_has_any_datatype_of_the_protocol(datatype: str) -> None:
    read = Declarations().read([INPUT | {"datatype": datatype}])

    assert read == (DeclaredTensor("INPUT0", datatype, (-1, 16)),)


def test_an_input_may_be_optional_and_a_scalar() -> None:
    kind = Declarations()

    read = kind.read([{"name": "scale", "datatype": "FP32", "shape": [], "optional": True}])

    assert read == (DeclaredTensor("scale", "FP32", (), True),)
    assert kind.show(read) == [{"name": "scale", "datatype": "FP32", "shape": [], "optional": True}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("INPUT0", "a list of tensors", id="a text"),
        pytest.param({"INPUT0": "INT32"}, "a list of tensors", id="a mapping"),
        pytest.param(["INPUT0"], "a list of tensors", id="names only"),
        pytest.param([{**INPUT, "name": ""}], "a `name` in each tensor", id="an empty name"),
        pytest.param([{"datatype": "INT32", "shape": [1]}], "a `name` in each tensor", id="no name"),
        pytest.param([INPUT, INPUT], "each name once; `INPUT0`", id="a name twice"),
        pytest.param([{**INPUT, "datatype": "int32"}], "the `datatype` of `INPUT0` to be one of B", id="numpy's word"),
        pytest.param([{**INPUT, "dtype": "INT32"}], "no `dtype` in `INPUT0`, but name, datatype", id="a misspelling"),
        pytest.param([{**INPUT, "shape": 16}], "the `shape` of `INPUT0`", id="a number as shape"),
        pytest.param([{**INPUT, "shape": [-2]}], "the `shape` of `INPUT0`", id="a negative dimension"),
        pytest.param([{**INPUT, "shape": [True]}], "the `shape` of `INPUT0`", id="a truth as dimension"),
        pytest.param([{**INPUT, "shape": [1] * 33}], "the `shape` of `INPUT0`", id="too many dimensions"),
        pytest.param([{**INPUT, "optional": 1}], "`optional` of `INPUT0` to be true or false", id="a number as truth"),
        pytest.param([{**INPUT, "name": str(each)} for each in range(1001)], "at most 1000 tensors", id="too many"),
    ],
)  # fmt: skip
def test_what_declares_no_tensors_is_refused_with_the_reason(value: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Declarations().read(value)


def test_a_wrong_declaration_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"model-config\.yaml: `outputs` is .*; expected the `datatype` of `INPUT0`"):
        merge(Overrides(), {"outputs": [{**INPUT, "datatype": "TEXT"}]}, make_config(tmp_path))
