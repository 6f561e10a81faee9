"""What `parallelType`, `parallelLevel` and `torchrun` ask for."""

import json
from pathlib import Path

import pytest

from tests.kit.build import make_config
from tests.kit.said import reason, said_in
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.extensions.ranks.parallel import parallel_of
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.archives.manifest import without_effect
from tsctl.daemon.models.registering.spec import worker_spec
from tsctl.daemon.models.settings import Overrides, merge
from tsctl.handlers.wire import Ranks


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(tmp_path)


TWO = {"nproc-per-node": 2}


@said_in("parallel.txt")
def test_parallel(given: str, config: Config) -> str:
    return f"{parallel_of(merge(Overrides(), json.loads(given), config))}"


@said_in("cannot_be.txt")
def test_what_cannot_be_is_refused_with_its_reason(given: str, config: Config) -> str:
    document = {"parallelType": "tp"} | json.loads(given)
    return reason(lambda: parallel_of(merge(Overrides(), document, config, gpus=2)), InvalidModel)


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
