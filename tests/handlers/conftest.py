"""Fixtures: a model's directory, as a worker sees it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.handlers.device import missing


@pytest.fixture(autouse=True, scope="session")
def device_is_there() -> None:
    """Fail every test where the device is missing: on the CPU, which handlers take then, they would prove nothing."""
    assert not missing(), missing()


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def imports() -> Iterator[None]:
    """Put `sys.path`, `sys.meta_path` and the modules called `ts` back as they were."""
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield
    sys.path[:], sys.meta_path[:] = path, finders
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] == "ts":
            del sys.modules[name]


@pytest.fixture
def model_dir(tmp_path: Path, imports: None) -> Iterator[Path]:
    """An archive's files, first on `sys.path`; what is imported from there is forgotten."""
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    for name, module in sys.modules.copy().items():
        if str(vars(module).get("__file__")).startswith(str(tmp_path)):
            del sys.modules[name]
