"""Files of models in which code, libraries and operators matter; others are in `conversations/model_files.txt`."""

import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE, GPU_ID, ROUNDING
from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.runtime.compat import look_in
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import import_file

CLOSE: dict[str, Any] = {} if GPU_ID is None else {"rtol": ROUNDING, "atol": ROUNDING}  # torch's own on the CPU
NET = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(2.0))
        def forward(self, x):
            return x * self.weight
"""


class Times(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(factor))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def load(model_dir: Path, config: dict[str, Any] | None = None, **model: str) -> Any:
    handler = BaseHandler()
    handler.initialize(context_of(model_dir, model, config))
    return handler.model


@pytest.mark.slow
def test_loading_torchscript_warns_of_nothing(model_dir: Path) -> None:
    torch.jit.script(Times(3.0)).save(model_dir / "model.pt")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        load(model_dir, serializedFile="model.pt")

    assert [str(each.message) for each in warned] == []


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler is installed")
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_package_of_aotinductor_takes_batches_of_any_size(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import aoti_compile_and_package  # takes seconds

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(model_dir / "cache"))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).eval().to(DEVICE)
    images = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    program = torch.export.export(net, (images,), dynamic_shapes=({0: torch.export.Dim("batch", max=64)},))
    aoti_compile_and_package(program, package_path=str(model_dir / "model.pt2"))
    unpacked = model_dir / "unpacked"
    unpacked.mkdir()
    monkeypatch.setenv("TMPDIR", str(unpacked))  # only now: the compiler has files of its own there
    monkeypatch.setattr(tempfile, "tempdir", None)  # it remembers the one before

    model = load(model_dir, serializedFile="model.pt2")

    assert GPU_ID is not None or list(unpacked.iterdir()) == []  # on a GPU, kernels are read from these files later
    for count in (1, 2, 5):
        with torch.inference_mode():
            torch.testing.assert_close(model(images[:count]), net(images[:count]), **CLOSE)


def test_a_package_of_aotinductor_that_does_not_run_here_is_refused(
    model_dir: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = tmp_path_factory.mktemp("unpacked")
    monkeypatch.setenv(
        "TORCHINDUCTOR_CACHE_DIR", str(model_dir / "cache")
    )  # of a process that has compiled nothing yet
    monkeypatch.setenv("TMPDIR", str(unpacked))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with zipfile.ZipFile(model_dir / "model.pt2", "w") as package:
        package.writestr("m/data/aotinductor/model/x.wrapper.so", b"garbage")
        package.writestr("m/archive_format", b"pt2")

    with pytest.raises(HandlerError, match=r"^`model.pt2` is not an AOTInductor package for this machine: "):
        load(model_dir, serializedFile="model.pt2")

    assert GPU_ID is not None or list(unpacked.iterdir()) == []


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler is installed")
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_library_of_aotinductor_takes_batches_of_any_size(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(model_dir / "cache"))
    net = torch.nn.Linear(3, 2).eval().to(DEVICE)
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    shapes = {"input": {0: torch.export.Dim("batch", max=64)}}
    with torch.no_grad():
        written = torch._export.aot_compile(net, (rows,), dynamic_shapes=shapes)
    shutil.copy(str(written), model_dir / "model.so")

    model = load(model_dir, serializedFile="model.so")

    for count in (2, 5):
        with torch.inference_mode():
            torch.testing.assert_close(model(rows[:count]), net(rows[:count]))


@pytest.mark.parametrize(
    ("torch_loads", "said"),
    [
        pytest.param(True, r"^`model.so` was not compiled .* this torch: compile the model anew, with ", id="is none"),
        pytest.param(False, r"loads no \.so files, .* `torch._inductor.aoti_compile_and_package`", id="is not loaded"),
    ],
)
def test_a_library_of_aotinductor_is_refused_with_the_way_out_if_it(
    torch_loads: bool, said: str, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model_dir / "model.so").write_bytes(b"garbage")
    if not torch_loads:
        monkeypatch.delattr(torch._export, "aot_load")

    with pytest.raises(HandlerError, match=said):
        load(model_dir, serializedFile="model.so")


@pytest.fixture
def pickled(model_dir: Path) -> Path:
    """An archive whose weights are a whole module, pickled by class name."""
    write(model_dir / "net.py", NET)
    net = import_file(model_dir / "net.py").Net()
    net.weight.data.fill_(5.0)
    torch.save(net, model_dir / "weights.pt")
    del sys.modules["net"]
    return model_dir


def test_weights_that_hold_code_are_refused_with_a_way_out(pickled: Path) -> None:
    with pytest.raises(HandlerError) as refused:
        load(pickled, modelFile="net.py", serializedFile="weights.pt")

    sentence = str(refused.value)
    assert sentence.startswith("`weights.pt` holds a pickled object of class `net.Net`, as `torch.save(model)` writes")
    assert "`weightsOnly: false` in its model-config.yaml" in sentence
    assert "\n" not in sentence


def test_weights_that_hold_code_are_loaded_when_the_archive_is_trusted(pickled: Path) -> None:
    model = load(pickled, {"weightsOnly": False}, modelFile="net.py", serializedFile="weights.pt")

    assert model(torch.ones(1, device=DEVICE)).item() == 5.0
    assert not model.training


def script(model_dir: Path, source: str) -> None:
    """Make a TorchScript file in a process of its own, where operators can be defined that are unknown here."""
    made = write(model_dir / "make.py", source)  # a file: torch.jit.script reads it
    subprocess.run([sys.executable, "-W", "ignore", made], cwd=model_dir, check=True, timeout=300)


def test_an_operator_that_no_library_has_defined_is_named_with_the_remedy(model_dir: Path) -> None:
    script(
        model_dir,
        """
        import torch
        library = torch.library.Library("mine", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        class Twice(torch.nn.Module):
            def forward(self, x):
                return torch.ops.mine.twice(x)
        torch.jit.script(Twice()).save("custom.pt")
        """,
    )

    with pytest.raises(HandlerError) as refused:
        load(model_dir, serializedFile="custom.pt")

    assert str(refused.value).startswith("`custom.pt` uses the operator `mine::twice`, which torch does not have: name")
    assert refused.value.__cause__ is None, "the sentence needs no traceback"


def test_operators_of_torchvision_need_no_handler(model_dir: Path) -> None:
    script(
        model_dir,
        """
        import torch, torchvision
        class Boxes(torch.nn.Module):
            def forward(self, x):
                return torchvision.ops.nms(x[:, :4], x[:, 4], 0.5)
        torch.jit.script(Boxes()).save("boxes.pt")
        """,
    )
    loads = "import sys; from pathlib import Path; import torch; from tsctl.handlers.builtin.support.modelfile import *"
    call = "load_file(Path('boxes.pt'), torch.device('cpu'))"
    kept = f"{call}(torch.tensor([[0.0, 0, 2, 2, 0.9]] * 2)).tolist()"
    check = f"{loads}; assert 'torchvision' not in sys.modules; assert {kept} == [0]"

    subprocess.run([sys.executable, "-c", check], cwd=model_dir, check=True, timeout=300)


@pytest.fixture
def of_a_script(pickled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive whose weights are a whole module, pickled by the script that defines its class."""
    script = ModuleType("__main__")
    exec(dedent(NET), vars(script))
    monkeypatch.setitem(sys.modules, "__main__", script)
    torch.save(script.Net(), pickled / "weights.pt")
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    look_in(pickled)
    return pickled


def test_a_module_that_a_script_pickled_is_of_the_class_in_the_models_file(of_a_script: Path) -> None:
    model = load(of_a_script, {"weightsOnly": False}, modelFile="net.py", serializedFile="weights.pt")

    assert type(model) is sys.modules["net"].Net


def test_a_class_of_a_script_that_no_file_defines_is_named_with_the_remedy(of_a_script: Path) -> None:
    write(of_a_script / "net.py", NET.replace("Net", "Other"))

    with pytest.raises(HandlerError, match=r"names the class `__main__\.Net` .* no file of the model defines `Net`"):
        load(of_a_script, {"weightsOnly": False}, modelFile="net.py", serializedFile="weights.pt")


def test_a_lack_of_memory_is_not_the_files_fault(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, map_location: torch.device) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(torch.jit, "load", full)

    with pytest.raises(RuntimeError, match="CUDA out of memory") as raised:
        load(model_dir, serializedFile="model.pt")
    assert not isinstance(raised.value, HandlerError)
