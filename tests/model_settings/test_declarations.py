"""Declared tensors: what model-config.yaml may say, and what is said about everything else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tests.kit.said import reason, said_in
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


@said_in("bad_tensors.txt")
def test_what_declares_no_tensors_is_refused_with_the_reason(given: str) -> str:
    value = [{**INPUT, "name": str(each)} for each in range(1001)] if given == "1001" else json.loads(given)
    return reason(lambda: Declarations().read(value), ValueError)


def test_a_wrong_declaration_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"model-config\.yaml: `outputs` is .*; expected the `datatype` of `INPUT0`"):
        merge(Overrides(), {"outputs": [{**INPUT, "datatype": "TEXT"}]}, make_config(tmp_path))
