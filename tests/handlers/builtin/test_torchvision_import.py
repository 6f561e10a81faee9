"""torchvision comes without torch.compile, and with it once that is imported."""

import subprocess
import sys

import pytest


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_vision_handler_is_imported_without_torch_compile() -> None:
    program = "import sys, handlers.builtin.image_classifier; print(*sys.modules)"
    modules = set(run(program))

    assert "torchvision.models.resnet" in modules and "torchvision.ops.roi_align" in modules
    assert modules & {"torch._dynamo", "torch._dynamo.utils", "torch._inductor", "sympy"} == set()


LATER = """
import sys, handlers.builtin.image_classifier
align = sys.modules["torchvision.ops.roi_align"]
before, finders = align.is_compile_supported, len(sys.meta_path)
{first}
import torch._dynamo.utils as real
print(before is real.is_compile_supported, align.is_compile_supported is real.is_compile_supported)
print(len(sys.meta_path) < finders)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        pytest.param("import torch._dynamo", id="torch.compile is imported"),
        pytest.param("assert isinstance(before('cpu'), bool)", id="a detection model asks"),
        pytest.param("import torch; torch._dynamo.config", id="somebody uses torch._dynamo"),
    ],
)
def test_the_real_function_takes_its_place_when(first: str) -> None:
    assert run(LATER.format(first=first)) == ["False", "True", "True"]


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
import handlers.builtin.image_classifier
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "wish",
    [
        "from torch._dynamo.utils import counters; print('got', counters is not None)",
        "import torch._dynamo.config as config; print('got', hasattr(config, 'recompile_limit'))",
        "import torch; print('got', callable(torch._dynamo.allow_in_graph))",
    ],
)
def test_a_torchvision_that_wants_more_gets_the_real_modules(wish: str) -> None:
    assert run(GREEDY.format(wish=wish)) == ["got", "True"]
