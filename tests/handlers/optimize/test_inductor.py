"""torch.compile: every batch size before the first request, and found again in the cache."""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.handlers.device import DEVICE, GPU_ID, ROUNDING
from tests.handlers.optimize.nets import put_archive
from tsctl.handlers.optimize import inductor
from tsctl.handlers.optimize.bfloat16 import Bfloat16
from tsctl.handlers.optimize.compiler import find_compiler

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
ROOT = Path(__file__).parents[3]
# Loads the archive as a worker does, with `compile` alone: a default that is a gain for one load, and not for the next,
# makes another model. Runs every batch size; says what was compiled when.
PROGRAM = """
import json, sys, torch
from pathlib import Path
from torch._dynamo.utils import counters
from tsctl.handlers import wire
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.runtime.runtime import Runtime
torch.set_num_threads(1)
from tsctl.handlers.optimize.packages import keeping
from tests.handlers.device import GPU_ID
if sys.argv[3] == "graphs":
    keeping.folder_for = lambda *_: None
load = wire.Load("net", "1.0", sys.argv[1], "image_classifier", {"model": json.loads(sys.argv[2])}, 5, 1, GPU_ID)
runtime = Runtime.load(load)
(report,) = runtime.optimize(["none", "compile"], Path(load.model_dir), load.batch_size)
compiled = counters["stats"]["unique_graphs"]
torch.set_num_threads(2)  # as when the daemon scales
body = example_image()
for size in range(1, 6):
    rows = [wire.Row(str(row), [], [("body", "", body)]) for row in range(size)]
    assert not any(answer.error for answer in runtime.run(rows))
print(json.dumps({
    "packed": counters["inductor"]["mkldnn_conv_weight_pack_matcher_count"],
    "report": [report.name, report.applied, report.drift],
    "before": compiled,
    "after": counters["stats"]["unique_graphs"],
    "hits": counters["inductor"]["fxgraph_cache_hit"],
    "misses": counters["inductor"]["fxgraph_cache_miss"],
}))
"""
unfit = inductor.refusal(nn.Identity(), DEVICE)
needs_compiler = pytest.mark.skipif(bool(unfit), reason=unfit)


@pytest.mark.parametrize(("there", "found"), [({"g++", "clang++"}, "g++"), ({"clang++"}, "clang++"), (set(), None)])
def test_a_compiler_is_looked_for(there: set[str], found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name in there else None)
    monkeypatch.delenv("CXX", raising=False)

    assert find_compiler() == found
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("CXX", "ccache g++-13")
    assert find_compiler() == "ccache g++-13"


@pytest.mark.parametrize(
    ("device", "named", "reason"),
    [
        (CPU, "", "torch.compile needs a C++ compiler, and none of g++, clang++ is installed"),
        (CPU, "icpx", "torch.compile needs a C++ compiler, and `icpx`, which CXX names, is not there"),
        (GPU, "", "torch.compile needs a C compiler, and none of gcc, clang, cc is installed"),
        (GPU, "icx", "torch.compile needs a C compiler, and `icx`, which CC names, is not there"),
    ],
)
def test_a_missing_compiler_is_named(
    device: torch.device, named: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())  # triton
    monkeypatch.setenv("CXX" if device == CPU else "CC", named)

    assert inductor.refusal(nn.Linear(1, 1), device) == reason


def test_torchscript_is_refused_and_in_bfloat16_too() -> None:
    model = torch.jit.script(nn.Linear(1, 1))

    for each in (model, Bfloat16(model)):
        assert inductor.refusal(each, CPU).startswith("the model is TorchScript, which")


@pytest.mark.heavy
@needs_compiler
@pytest.mark.parametrize("kind", ["libraries", "graphs"])
def test_every_batch_size_is_compiled_at_the_load_and_found_in_the_cache_by_the_next_worker(
    kind: str, model_dir: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    arguments = [sys.executable, "-c", PROGRAM, str(model_dir), json.dumps(put_archive(model_dir)), kind]

    first, second = (
        json.loads(
            subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()[-1]
        )
        for _ in range(2)
    )

    assert first["report"][:2] == second["report"][:2] == ["compile", True]
    assert 0 <= first["report"][2] < max(1e-4, ROUNDING)
    assert (
        first["before"] == first["after"] == (3 if GPU_ID is None else 2)
    )  # of one, on the CPU a full one, all others
    if kind == "libraries" and GPU_ID is None:
        assert second["before"] == second["after"] == 0
        return
    assert (first["hits"], first["misses"]) == (0, 2)  # packed weights cannot be kept
    assert (second["hits"], second["misses"]) == (2, 0)
    assert first["packed"] == second["packed"]
    assert (first["packed"] > 0) is (GPU_ID is None)  # only oneDNN packs


def sizes_run(batch_size: int, graph_of: Callable[[int], int]) -> list[int]:
    """Run a model that counts as compiled anew for each new value of `graph_of(size)`."""
    from torch._dynamo.utils import counters  # takes seconds

    graphs: set[int] = set()

    def run(size: int) -> None:
        counters["stats"]["unique_graphs"] += graph_of(size) not in graphs
        graphs.add(graph_of(size))

    return inductor.compile_sizes(nn.Identity(), run, batch_size)


@pytest.mark.parametrize(
    ("batch_size", "graph_of", "sizes"),
    [
        pytest.param(32, lambda size: size == 1, [1, 2, 32, 3], id="one graph for all but one: a few sizes tell"),
        pytest.param(5, lambda size: size, [1, 2, 5, 3, 1, 2, 3, 4, 5], id="one graph for each size: all of them"),
        pytest.param(5, lambda size: size > 3, [1, 2, 5, 3, 1, 2, 3, 4, 5], id="another graph for large ones: all"),
        pytest.param(1, lambda size: size, [1, 1], id="batches of one"),
        pytest.param(2, lambda size: size, [1, 2, 2], id="batches of two"),
    ],
)
def test_sizes_are_run_until_nothing_is_left_to_compile(
    batch_size: int, graph_of: Callable[[int], int], sizes: list[int]
) -> None:
    assert sizes_run(batch_size, graph_of) == sizes


def test_the_batch_is_a_dynamic_dimension() -> None:
    from torch._dynamo.utils import counters

    model = torch.compile(nn.Linear(2, 2).to(DEVICE), backend="eager")
    inductor.compile_sizes(model, lambda size: model(torch.ones(size, 2, device=DEVICE)), 8)
    before = counters["stats"]["unique_graphs"]

    for size in range(1, 9):
        model(torch.ones(size, 2, device=DEVICE))

    assert counters["stats"]["unique_graphs"] == before


class Graph(nn.Module):
    """Notes that it ran."""

    def __init__(self, name: str, ran: list[str], apart: float = 0.0) -> None:
        super().__init__()
        self.name, self.ran, self.apart = name, ran, apart

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        self.ran.append(self.name)
        return tensor + self.apart


def two_graphs(ran: list[str], apart: float = 0.0) -> inductor.Compiled:
    """Make a model with both graphs; that of full batches gives something else."""
    made = inductor.Compiled(nn.Identity(), CPU)
    made.usual = Graph("usual", ran)
    vars(made)["_full"] = Graph("full", ran, apart)
    return made


@pytest.mark.parametrize(
    ("shape", "graph"), [((4, 3), "full"), ((3, 3), "usual"), ((1, 3), "usual"), ((4, 5), "usual"), ((8, 3), "usual")]
)
def test_only_inputs_of_the_full_batchs_shape_go_through_its_graph(shape: tuple[int, ...], graph: str) -> None:
    ran: list[str] = []
    model = two_graphs(ran, apart=0.5)
    assert model.compile_full(lambda: model(torch.ones(4, 3))) == pytest.approx(0.5), "the drift of full batches"

    model(torch.ones(shape))

    assert ran == ["usual", "full", graph]


def test_a_compiled_model_has_the_models_own_members() -> None:
    model = nn.Linear(2, 3)

    compiled = inductor.Compiled(model, CPU)

    assert compiled.out_features == 3
    assert [id(each) for each in compiled.parameters()] == [id(each) for each in model.parameters()]
