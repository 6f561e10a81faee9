"""torchvision comes without torch.compile, and with it once that is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def run(program: str, first: Path = ROOT) -> list[str]:
    """Run a program whose modules are looked for in a folder first; return the words that it prints."""
    places = [str(first), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real packages, as far as they import each other: each is imported in no time."""
    root = tmp_path_factory.mktemp("packages")
    for name, text in {
        "torch": "import importlib\ndef __getattr__(name):\n"
        "    if name == '_dynamo':\n        return importlib.import_module('torch._dynamo')\n"
        "    raise AttributeError(name)\n",
        "torch._dynamo": "from torch._dynamo import config, utils\ndef allow_in_graph(): pass\n",
        "torch._dynamo.config": "recompile_limit = 8\n",
        "torch._dynamo.utils": "counters = {}\ndef is_compile_supported(device): return device == 'cpu'\n",
        "torchvision": "from torchvision import extension, ops, transforms\n",
        "torchvision.extension": "",
        "torchvision.ops": "from torchvision.ops import roi_align\n",
        "torchvision.ops.roi_align": "from torch._dynamo.utils import is_compile_supported\n",
        "torchvision.transforms": "",
    }.items():
        folder = root.joinpath(*name.split("."))
        folder.mkdir()
        (folder / "__init__.py").write_text(text)
    return root


def test_a_vision_handler_is_imported_without_torch_compile() -> None:
    program = "import sys, tsctl.handlers.builtin.image_classifier; print(*sys.modules)"
    modules = set(run(program))

    assert "torchvision.models.resnet" in modules and "torchvision.ops.roi_align" in modules
    assert modules & {"torch._dynamo", "torch._dynamo.utils", "torch._inductor", "sympy"} == set()


LATER = """
import sys, tsctl.handlers.builtin.torchvision_import
align = sys.modules["torchvision.ops.roi_align"]
before, finders = align.is_compile_supported, len(sys.meta_path)
{first}
import torch._dynamo.utils as real
print(before is real.is_compile_supported, align.is_compile_supported is real.is_compile_supported)
print(len(sys.meta_path) < finders)
"""
IMPORTED = "import torch._dynamo"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(IMPORTED, id="torch.compile is imported"),
        pytest.param("assert isinstance(before('cpu'), bool)", id="a detection model asks"),
        pytest.param("import torch; torch._dynamo.config", id="somebody uses torch._dynamo"),
    ],
)
def test_the_real_function_takes_its_place_when(first: str, packages: Path) -> None:
    assert run(LATER.format(first=first), packages) == ["False", "True", "True"]


@pytest.mark.heavy
def test_the_function_of_the_torch_that_is_installed_takes_its_place() -> None:
    assert run(LATER.format(first=IMPORTED)) == ["False", "True", "True"]


GREEDY = """
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

class Other(MetaPathFinder, Loader):
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "torchvision.extension" else None
    def exec_module(self, module):
        {wish}
        raise SystemExit

sys.meta_path.insert(0, Other())
import tsctl.handlers.builtin.torchvision_import
"""


@pytest.mark.parametrize(
    "wish",
    [
        "from torch._dynamo.utils import counters; print('got', counters is not None)",
        "import torch._dynamo.config as config; print('got', hasattr(config, 'recompile_limit'))",
        "import torch; print('got', callable(torch._dynamo.allow_in_graph))",
    ],
)
def test_a_torchvision_that_wants_more_gets_the_real_modules(wish: str, packages: Path) -> None:
    assert run(GREEDY.format(wish=wish), packages) == ["got", "True"]
