"""`onnxruntime`: the model exported to ONNX when it is loaded, and run by ONNX Runtime on the worker's threads.

    the handler's batches of 1, 2 and 3 ──▶ what is the batch's dimension
    the model ──export──▶ model.onnx, weights in `compiled` of the state directory ──▶ a session in each worker

ONNX Runtime fuses and packs a graph of convolutions better than torch runs it module by module: EfficientNet-Lite0
takes half of the CPU time (docs/optimize.md). What the session does not take, such as inputs of another shape, runs
in the module.

The weights are in a file of their own, which a session maps: it has what it packs of them in memory, 202 MiB for twelve
linear layers of 192 MiB, where it has 378 for weights within model.onnx.

torch has two exporters. The one that records a run (`dynamo=False`) is in every torch from 2.6 on, needs the package
onnx alone, and takes 2 s for Lite0. It would freeze what Python decides by the values of tensors: torch warns of that,
and then the other one is used, which is the default since torch 2.9, needs onnxscript, too, and takes 26 s: of what
torch.export takes, which refuses such models or has both ways in its graph. Its graphs are no faster.
"""

import contextlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.jit import TracerWarning  # type: ignore[attr-defined]
from torch.utils import _pytree as pytree

from tsctl.handlers.names import ONNX_PACKAGES
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.packages.making import SIZES, Flat, described, quiet, written_spec
from tsctl.handlers.optimize.packages.package import Description, Graph, Packages
from tsctl.handlers.optimize.packages.recording import NotExportable, Recorded
from tsctl.handlers.optimize.wrapper import ModelWrapper
from tsctl.handlers.requests.excerpt import excerpt, message_of

_FILE, _WEIGHTS, _GRAPH = "model.onnx", "weights", "onnx"
_INSTALL = "pip install 'tsctl[onnx]'"


def refusal(model: Any, device: torch.device) -> str:
    """Return why ONNX Runtime cannot run a model here; empty if it can."""
    if device.type != "cpu":
        return "ONNX Runtime is used on the CPU only; on a GPU `compile` and `graph` make a model faster"
    for name in ONNX_PACKAGES:
        if importlib.util.find_spec(name) is None:
            return f"the package {name} is not installed: {_INSTALL}"
    if any(parameter.dtype == torch.bfloat16 for parameter in model.parameters()):
        return "the model is in bfloat16, in which ONNX Runtime computes nothing on a CPU"
    return ""


class OnnxModel(ModelWrapper):
    """A model that ONNX Runtime runs. Its other members are the module's own."""

    within = "usual"

    def __init__(self, model: nn.Module, exported: "Exported") -> None:
        super().__init__()
        self.usual = model
        self._exported = exported

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self._exported.run(args, kwargs)
        return self.usual(*args, **kwargs) if output is None else output[0]


class Exported(Packages):
    """The exported model of a folder."""

    def __init__(self, folder: Path, description: Description, model: nn.Module) -> None:
        super().__init__(folder, description, model)
        graph = description.graphs[_GRAPH]
        self._graphs.append((graph, _Session(folder / _FILE), pytree.treespec_loads(graph.output_spec)))


class _Session:
    """A session with the threads of this worker, which the daemon changes while it serves."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._session, self._threads = _open(file), torch.get_num_threads()
        # The exporter that records leaves out inputs that the model does not use; the others keep our names.
        names = [each.name for each in self._session.get_inputs()]
        self._places = {name: int(name[2:]) if name[:2] == "in" else at for at, name in enumerate(names)}

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if torch.get_num_threads() != self._threads:
            self._threads = torch.get_num_threads()
            with contextlib.suppress(Exception):  # the folder was removed: the old one does, with its threads
                self._session = _open(self._file)
        feed = {name: inputs[place].numpy(force=True) for name, place in self._places.items()}
        return [torch.from_numpy(each) for each in self._session.run(None, feed)]


def _open(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # the default is every core of the machine
    options.add_session_config_entry("session.force_spinning_stop", "1")  # between batches others want the cores
    options.log_severity_level = 3  # errors: its warnings are about the exporter's names
    return onnxruntime.InferenceSession(str(file), sess_options=options, providers=["CPUExecutionProvider"])


def make(model: nn.Module, record: Callable[[int], Recorded], folder: Path) -> tuple[Description, Exported]:
    """Export a model into a folder, and load it.

    Args:
        record: returns the model's call for a batch of so many rows.

    Raises:
        NotExportable: the model cannot be exported.
        Exception: an exporter, or ONNX Runtime, may raise anything.
    """
    calls, batched, description = described(record, SIZES)
    first = calls[1]
    _, plain_spec = pytree.tree_flatten((tuple(first.inputs), {}))
    # TorchScript cannot be recorded within a module; it is exported as it is, with both ways of what it decides.
    script = isinstance(model, torch.jit.ScriptModule) and first.input_spec == plain_spec
    _export(model if script else Flat(model, first.input_spec).eval(), calls, batched, folder / _FILE)
    _move_weights(folder / _FILE)
    shapes = [list(each.shape) for each in first.inputs]
    description.graphs[_GRAPH] = Graph(shapes, written_spec(first.output_spec), batched, least=1)
    exported = Exported(folder, description, model)
    for call in calls.values():
        args, kwargs = pytree.tree_unflatten(list(call.inputs), call.input_spec)
        found = exported.run(args, kwargs)
        assert found is not None
        expected = pytree.tree_unflatten(list(call.outputs), call.output_spec)
        description.drift = exported.drift = max(description.drift, drift(expected, found[0]))
    return description, exported


def _export(flat: nn.Module, calls: dict[int, Recorded], batched: Sequence[bool], file: Path) -> None:
    call = calls[2]
    if len(call.outputs) != len({id(each) for each in call.outputs}):
        raise NotExportable("the model returns a tensor twice")
    why = "the exporter that records a run is not in this torch"
    try:
        with torch.no_grad(), quiet() as told:
            torch.onnx.export(
                flat, tuple(call.inputs), str(file), dynamo=False, dynamic_axes=_axes(calls, batched),
                input_names=[f"in{place}" for place in range(len(call.inputs))],
                output_names=[f"out{place}" for place in range(len(call.outputs))],
            )  # fmt: skip
        frozen = [each for each in told if issubclass(each.category, TracerWarning)]
        if not frozen:
            return
        why = f"Python decides by the values of its tensors ({Path(frozen[0].filename).name}:{frozen[0].lineno})"
    except Exception as error:  # noqa: BLE001 - the other one may be able to
        why = f"it cannot be exported ({type(error).__name__}: {excerpt(message_of(error).strip(), 200)})"
    if importlib.util.find_spec("onnxscript") is None:
        raise NotExportable(f"{why}; torch's other exporter needs a package: pip install onnxscript")
    from torch.export import Dim, export

    dynamic = {"leaves": tuple({0: Dim("batch")} if each else None for each in batched)}
    try:
        with torch.no_grad(), quiet():
            # Of a module the exporter would freeze after all what torch.export refuses; a program leaves no other way.
            program = export(flat, tuple(call.inputs), dynamic_shapes=dynamic, strict=False)
            torch.onnx.export(program, f=str(file), dynamo=True, verbose=False, external_data=False)
    except Exception as error:
        its = f"{type(error).__name__}: {excerpt(message_of(error).strip().partition(chr(10))[0], 120)}"
        raise NotExportable(f"{why}; nor does torch's other exporter take it ({its})") from error


def _move_weights(file: Path) -> None:
    """Move the weights of an exported model into a file beside it."""
    import onnx

    onnx.save_model(onnx.load(file), file, save_as_external_data=True, location=_WEIGHTS)


def _axes(calls: dict[int, Recorded], batched: Sequence[bool]) -> dict[str, dict[int, str]]:
    """Return the dimensions that differ from batch to batch, by the names of inputs and outputs."""
    axes = {f"in{place}": {0: "batch"} for place, each in enumerate(batched) if each}
    for place, (two, three) in enumerate(zip(calls[2].outputs, calls[3].outputs, strict=True)):
        differ = [axis for axis, sizes in enumerate(zip(two.shape, three.shape, strict=False)) if len({*sizes}) > 1]
        axes[f"out{place}"] = {axis: f"out{place}_{axis}" for axis in differ}
    return axes
