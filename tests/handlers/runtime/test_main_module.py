"""A pickle that a script has written names `__main__`."""

import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.handlers.samples import write
from tsctl.handlers.runtime.compat import look_in
from tsctl.handlers.sdk.loader import import_file

PICKLED = b"c__main__\nNet\n."  # the class


@pytest.fixture
def main(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return `__main__` of a worker of the model's directory."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    look_in(model_dir)
    return main


def test_a_name_of_main_is_that_of_the_models_module(main: ModuleType, model_dir: Path) -> None:
    net = import_file(write(model_dir / "net.py", "class Net: ...\n"))
    import_file(write(model_dir / "other.py", "from net import Net\n"))

    assert pickle.loads(PICKLED) is net.Net


def test_a_name_of_the_program_itself_stays(main: ModuleType, model_dir: Path) -> None:
    import_file(write(model_dir / "net.py", "class Net: ...\n"))
    main.Net = list  # type: ignore[attr-defined]

    assert pickle.loads(PICKLED) is list


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param([], id="no module"),
        pytest.param(["class Net: ...\n", "class Net: ...\n"], id="two"),
        pytest.param(["from collections import OrderedDict as Net\n"], id="an imported class"),
    ],
)
def test_otherwise_there_is_no_such_name(main: ModuleType, model_dir: Path, sources: list[str]) -> None:
    for number, source in enumerate(sources):
        import_file(write(model_dir / f"net{number}.py", source))

    with pytest.raises(AttributeError, match="Can't get attribute 'Net'"):
        pickle.loads(PICKLED)
    assert not hasattr(main, "__spec__") or main.__spec__ is None
