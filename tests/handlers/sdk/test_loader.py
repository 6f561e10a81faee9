"""From a handler string to what the runtime calls."""

import copy
import sys
from pathlib import Path

import pytest

import tsctl
from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import import_file, load_handler

FUNCTION = """
    calls = []
    def handle(data, context):
        calls.append(data)
        return data and ["handle"] * len(data)
    def other(data, context):
        return ["other"] * len(data)
"""
CLASS = """
    class Handler:
        def initialize(self, context):
            self.name = context.model_name
        def handle(self, data, context):
            return [self.name] * len(data)
"""


@pytest.mark.parametrize("handler", ["mine", "mine.py", "some/where/mine.py"])
def test_a_file_with_one_class_is_instantiated_and_initialized(model_dir: Path, handler: str) -> None:
    write(model_dir / "mine.py", CLASS)
    context = context_of(model_dir)

    entry = load_handler(handler, model_dir)
    entry.initialize(context)

    assert type(entry.instance).__name__ == "Handler"
    assert entry.handle([{}], context) == ["net"]


def test_a_function_is_called_once_without_data_to_initialize(model_dir: Path) -> None:
    write(model_dir / "mine.py", FUNCTION)
    context = context_of(model_dir)

    entry = load_handler("mine.py", model_dir)
    entry.initialize(context)
    answers = entry.handle([{}, {}], context)

    assert entry.instance is None
    assert answers == ["handle", "handle"]
    assert sys.modules["mine"].calls == [None, [{}, {}]]


@pytest.mark.parametrize("handler", ["mine:other", "mine.py:other"])
def test_the_function_may_be_named(model_dir: Path, handler: str) -> None:
    write(model_dir / "mine.py", FUNCTION)

    entry = load_handler(handler, model_dir)

    assert entry.handle([{}], context_of(model_dir)) == ["other"]


def test_where_the_named_function_is_missing_the_class_is_the_handler_as_in_torchserve(model_dir: Path) -> None:
    write(model_dir / "mine.py", CLASS)

    entry = load_handler("mine.py:nothing", model_dir)

    assert type(entry.instance).__name__ == "Handler"


def test_a_file_without_the_named_function_and_without_a_class_is_an_error_that_names_it(model_dir: Path) -> None:
    write(model_dir / "mine.py", "    x = 1\n")

    with pytest.raises(HandlerError, match=r"mine\.py needs a function `nothing` or exactly one class"):
        load_handler("mine.py:nothing", model_dir)


def test_a_built_in_handler_is_found_by_its_name(model_dir: Path) -> None:
    entry = load_handler("image_classifier", model_dir)

    assert type(entry.instance) is ImageClassifier


def test_a_file_of_the_archive_comes_before_a_built_in_handler(model_dir: Path) -> None:
    write(model_dir / "image_classifier.py", CLASS)

    entry = load_handler("image_classifier", model_dir)

    assert type(entry.instance).__name__ == "Handler"


@pytest.mark.parametrize("handler", ["installed_handler", "installed.inner"])
def test_an_installed_module_is_found_too(model_dir: Path, handler: str) -> None:
    elsewhere = model_dir / "site-packages"
    (elsewhere / "installed").mkdir(parents=True)
    write(elsewhere / "installed_handler.py", CLASS)
    write(elsewhere / "installed" / "inner.py", CLASS)
    sys.path.append(str(elsewhere))

    entry = load_handler(handler, model_dir)

    assert type(entry.instance).__module__ == handler


def test_a_handler_that_is_nowhere_is_named(model_dir: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'handler_that_is_nowhere'"):
        load_handler("handler_that_is_nowhere.py", model_dir)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param(
            CLASS + CLASS.replace("Handler", "Second"),
            "`mine.py:Handler`, `mine.py:Second`: name one of them in place of `mine.py`",
            id="two handlers",
        ),
        pytest.param("class A: ...\n    class B: ...", "A, B", id="two classes that handle nothing"),
        pytest.param("x = 1", "none", id="no class"),
        pytest.param("from tsctl.handlers.builtin.base import BaseHandler", "none", id="an imported class"),
    ],
)
def test_what_a_file_holds_instead_of_one_handler_is_named(model_dir: Path, source: str, names: str) -> None:
    write(model_dir / "mine.py", source if source.startswith("\n") else f"    {source}")

    with pytest.raises(
        HandlerError, match=rf"exactly one class with a method `handle`( or `predict`)?; it has {names}$"
    ):
        load_handler("mine.py", model_dir)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("    class Helper:\n        pass\n", id="a helper class"),
        pytest.param("    class Settings(dict):\n        handle = None\n", id="a class whose `handle` is no method"),
        pytest.param("    from tsctl.handlers.builtin.base import BaseHandler\n", id="an imported base"),
        pytest.param("    service = Handler\n", id="a second name for it"),
    ],
)
def test_beside_its_handler_a_file_may_hold(model_dir: Path, more: str) -> None:
    write(model_dir / "mine.py", CLASS + more)

    entry = load_handler("mine.py", model_dir)

    assert type(entry.instance).__name__ == "Handler"


def test_of_a_base_and_its_subclass_the_subclass_is_the_handler(model_dir: Path) -> None:
    write(model_dir / "mine.py", CLASS + "    class Derived(Handler):\n        pass\n")

    entry = load_handler("mine.py", model_dir)

    assert type(entry.instance).__name__ == "Derived"


def test_a_class_without_initialize_is_refused(model_dir: Path) -> None:
    write(model_dir / "mine.py", "    class Handler:\n        def handle(self, data, context): ...\n")

    with pytest.raises(HandlerError, match="Handler has no method `initialize`"):
        load_handler("mine.py", model_dir)


def test_a_file_called_copy_leaves_the_standard_library_alone(model_dir: Path) -> None:
    write(model_dir / "copy.py", CLASS)

    entry = load_handler("copy.py", model_dir)

    assert type(entry.instance).__name__ == "Handler"
    assert sys.modules["copy"] is copy


def test_a_file_called_tsctl_leaves_our_package_alone(model_dir: Path) -> None:
    write(model_dir / "tsctl.py", CLASS)

    entry = load_handler("tsctl.py", model_dir)

    assert type(entry.instance).__name__ == "Handler"
    assert sys.modules["tsctl"] is tsctl


@pytest.mark.parametrize("name", ["mine", "image_classifier"], ids=["any name", "a built-in handler's name"])
def test_a_package_that_the_file_lacks_is_the_error_that_is_shown(model_dir: Path, name: str) -> None:
    write(model_dir / f"{name}.py", "    import a_package_that_is_not_installed\n" + CLASS)

    with pytest.raises(ModuleNotFoundError, match="No module named 'a_package_that_is_not_installed'"):
        load_handler(name, model_dir)


def test_a_file_that_fails_to_import_is_not_left_half_imported(model_dir: Path) -> None:
    write(model_dir / "mine.py", "    raise RuntimeError('not today')\n")

    with pytest.raises(RuntimeError, match="not today"):
        load_handler("mine.py", model_dir)
    assert "mine" not in sys.modules


def test_a_file_that_the_handler_imported_already_is_not_imported_twice(model_dir: Path) -> None:
    file = write(model_dir / "net.py", "    class Net: ...\n")
    write(model_dir / "mine.py", "    from net import Net\n" + CLASS)
    load_handler("mine.py", model_dir)

    again = import_file(file)

    assert again.Net is sys.modules["mine"].Net
