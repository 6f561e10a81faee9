"""TorchServe's import names lead to ours."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from handlers import compat

NAMES = [(module, name) for module, names in compat.TABLE.items() for name in names]


@pytest.fixture(autouse=True)
def installed(imports: None) -> None:
    compat.install()


@pytest.fixture
def torchserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package called `ts`, first on `sys.path`, with a module that ours has and one that ours lacks."""
    package = tmp_path / "ts"
    package.mkdir()
    for name in ("__init__", "context", "launcher"):
        (package / f"{name}.py").write_text("class Context: ...\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES])
def test_a_name_of_torchserve_is_ours(module: str, name: str) -> None:
    our_module, our_name = compat.TABLE[module][name]

    found = getattr(importlib.import_module(module), name)

    assert found is getattr(importlib.import_module(our_module), our_name)


@pytest.mark.parametrize(
    "statement",
    [
        "from ts.torch_handler.base_handler import BaseHandler",
        "from ts.torch_handler import base_handler; BaseHandler = base_handler.BaseHandler",
        "import ts.torch_handler.base_handler; BaseHandler = ts.torch_handler.base_handler.BaseHandler",
        "import ts.torch_handler.base_handler as base; BaseHandler = base.BaseHandler",
    ],
)
def test_every_form_of_import_works(statement: str) -> None:
    namespace: dict[str, type] = {}

    exec(statement, namespace)

    assert namespace["BaseHandler"].__module__ == "handlers.defaults.base"


@pytest.mark.usefixtures("torchserve")
def test_ours_wins_over_another_package_of_that_name() -> None:
    found = importlib.import_module("ts.context").Context

    assert found.__module__ == "handlers.context"


@pytest.mark.usefixtures("torchserve")
def test_the_other_package_does_not_fill_what_ours_lacks() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"ts\.launcher"):
        importlib.import_module("ts.launcher")


def test_a_name_that_ours_lacks_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Nothing' from 'ts\.context'"):
        exec("from ts.context import Nothing", {})


def test_an_attribute_that_ours_lacks_is_named() -> None:
    module = importlib.import_module("ts.context")

    with pytest.raises(AttributeError, match=r"tsctl's `ts\.context` has no `Nothing`"):
        module.Nothing  # noqa: B018 - looking it up is the test


def test_nothing_is_looked_up_before_it_is_used() -> None:
    module: ModuleType = importlib.import_module("ts.torch_handler.image_classifier")

    before = "ImageClassifier" in vars(module)
    found = module.ImageClassifier

    assert not before
    assert vars(module)["ImageClassifier"] is found


def test_other_modules_are_found_as_ever() -> None:
    finder = sys.meta_path[0]

    assert finder.find_spec("json", None) is None
    assert finder.find_spec("tsx", None) is None
