"""What `parallelType`, `parallelLevel` and `torchrun` ask for."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.extensions.ranks.parallel import Parallel, parallel_of
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.archives.manifest import without_effect
from tsctl.daemon.models.registering.spec import worker_spec
from tsctl.daemon.models.settings import Overrides, merge
from tsctl.handlers.wire import Ranks


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(tmp_path)


TWO = {"nproc-per-node": 2}


@pytest.mark.parametrize(
    ("document", "parallel"),
    [
        pytest.param({}, Parallel(), id="one process by default"),
        pytest.param({"parallelType": "tp", "torchrun": TWO}, Parallel("tp", 2, Ranks(2)), id="tp"),
        pytest.param({"parallelType": "PPTP", "torchrun": TWO}, Parallel("pptp", 2, Ranks(2)), id="in any case"),
        pytest.param({"parallelType": "pp", "torchrun": TWO}, Parallel("pp", 2, Ranks(2, each=False)), id="pp"),
        pytest.param({"parallelType": "tp", "torchrun": {"nproc-per-node": 1}}, Parallel("tp", 1, Ranks(1)), id="one"),
        pytest.param({"parallelType": "custom", "parallelLevel": 4}, Parallel("custom", 4), id="custom"),
        pytest.param(
            {"parallelType": "tp", "parallelLevel": 4, "torchrun": TWO}, Parallel("tp", 2, Ranks(2)), id="torchrun wins"
        ),
        pytest.param(
            {"parallelType": "tp", "torchrun": TWO | {"OMP_NUMBER_THREADS": 3}},
            Parallel("tp", 2, Ranks(2), 3),
            id="threads",
        ),
        pytest.param({"torchrun": TWO, "parallelLevel": 2}, Parallel(), id="a level without a type"),
        pytest.param({"parallelType": "tp"}, Parallel(), id="a type without a level"),
        pytest.param({"parallelType": "none", "torchrun": TWO}, Parallel(), id="none"),
        pytest.param({"parallelType": "", "torchrun": None}, Parallel(), id="empty"),
    ],
)
def test_parallel(document: dict[str, Any], parallel: Parallel, config: Config) -> None:
    assert parallel_of(merge(Overrides(), document, config)) == parallel


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"torchrun": TWO | {"nnodes": 2}}, "`nnodes` of `torchrun` is 2, but a worker's processes run on this"),
        ({"torchrun": {"nproc-per-node": 4}}, "a worker takes 4 GPUs, but the model may use 2: lower `nproc-per-node`"),
        ({"parallelType": "custom", "parallelLevel": 3}, "a worker takes 3 GPUs, but the model may use 2: lower `para"),
        ({"torchrun": TWO, "asyncCommunication": True}, "rows that run on their own have no common order"),
        ({"torchrun": TWO, "isolate": True}, "processes that run a batch together cannot repeat a part"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(document: dict[str, Any], sentence: str, config: Config) -> None:
    settings = merge(Overrides(), {"parallelType": "tp"} | document, config, gpus=2)

    with pytest.raises(InvalidModel) as caught:
        parallel_of(settings)

    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [{"parallelType": "dp"}, {"parallelType": 2}, {"torchrun": [2]}, {"torchrun": {"nproc-per-node": "gpu"}}],
)
def test_a_value_of_the_wrong_kind_is_refused(document: dict[str, Any], config: Config) -> None:
    with pytest.raises(InvalidModel, match="expected"):
        merge(Overrides(), document, config)


def test_keys_without_an_effect_are_named() -> None:
    further = {"rdzv-backend": "c10d", "max-restarts": 3}

    assert without_effect({"parallelType": "tp", "torchrun": TWO | further}) == [
        "torchrun.max-restarts",
        "torchrun.rdzv-backend",
    ]
    assert without_effect({"torchrun": TWO, "parallelLevel": 2}) == ["parallelLevel", "torchrun"]
    assert without_effect({"parallelType": "custom", "parallelLevel": 2}) == []


def test_the_workers_of_a_parallel_model_are_groups_that_do_not_isolate(config: Config) -> None:
    manifest = parse_manifest({"model": {"modelName": "m", "modelVersion": "1.0", "handler": "h.py"}})
    settings = merge(Overrides(), {"parallelType": "tp", "torchrun": TWO}, config, gpus=4)
    spec = worker_spec(
        manifest, Path("/m"), settings, in_place=False, python=None, log=print, measured=print,
        isolated=print,
    )  # fmt: skip

    assert (spec.told["ranks"], spec.processes, spec.gpus_each, spec.isolate) == (Ranks(2), 2, 2, False)
