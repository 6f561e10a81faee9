"""Export a model, and compile its graphs into libraries."""

import contextlib
import logging
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.packages.package import FULL, ONE, REST, Description, Graph, Packages, weights_of
from tsctl.handlers.optimize.packages.recording import NotExportable, Recorded
from tsctl.handlers.optimize.packages.side_by_side import Apart, run_side_by_side

SIZES = (1, 2, 3)  # of the batches that show which dimensions are the batch's
MODEL = "model"  # the model's name within `Flat`


class Flat(nn.Module):
    """A model that takes and returns tensors only, one after the other."""

    def __init__(self, model: nn.Module, spec: pytree.TreeSpec) -> None:
        super().__init__()
        self.model = model
        self._spec = spec

    def forward(self, *leaves: torch.Tensor) -> list[torch.Tensor]:
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return pytree.tree_leaves(self.model(*args, **kwargs))


def make(
    model: nn.Module,
    record: Callable[[int], Recorded],
    batch_size: int,
    folder: Path,
    compiler: str,
    beside: Apart | None = None,
) -> tuple[Description, Packages]:
    """Write a model's libraries into a folder, and load them.

    Args:
        record: returns the model's call for a batch of so many rows.
        beside: starts processes, in which some of the graphs are compiled; None: all are compiled here.

    Raises:
        NotExportable: the model cannot be exported, or its libraries answer differently from the model.
        Exception: a compiler may raise anything.
    """
    calls, batched, description = described(record, {*SIZES, batch_size})
    output_spec = written_spec(calls[1].output_spec)
    flat = Flat(model, calls[1].input_spec).eval()
    sizes = {FULL: batch_size, ONE: 1, REST: 3}
    if batch_size == 1:
        del sizes[ONE]
    works = {
        name: partial(
            _compile, flat, calls[size].inputs, batched if name == REST else [], folder / f"{name}.so", compiler, name
        )
        for name, size in sizes.items()
    }
    for name, held in run_side_by_side(works, beside).items():
        shapes = [list(each.shape) for each in calls[sizes[name]].inputs]
        description.graphs[name] = Graph(shapes, output_spec, batched if name == REST else [], held)
    packages = Packages(folder, description, model)
    description.drift = packages.drift = _check(packages, calls, batch_size)
    return description, packages


def described(
    record: Callable[[int], Recorded], sizes: Collection[int]
) -> tuple[dict[int, Recorded], list[bool], Description]:
    """Return the model's calls for batches of these sizes, for each input whether its first dimension is the batch's,
    and a description that lacks the graphs.

    Args:
        sizes: `SIZES` among them.

    Raises:
        NotExportable: the calls differ in more than the batch's size.
    """
    calls = {size: record(size) for size in sizes}
    first = calls[1]
    if any(call.input_spec != first.input_spec or call.output_spec != first.output_spec for call in calls.values()):
        raise NotExportable("the model's arguments or output are nested differently from batch to batch")
    batched = batched_inputs(*(calls[size] for size in SIZES))
    dtypes = [str(each.dtype).removeprefix("torch.") for each in first.inputs]
    return calls, batched, Description(written_spec(first.input_spec), dtypes, {})


def written_spec(spec: pytree.TreeSpec) -> str:
    try:
        return pytree.treespec_dumps(spec)
    except Exception as error:  # noqa: BLE001 - a class of the user's that torch cannot write
        raise NotExportable(f"the model's arguments or output cannot be written down: {error}") from None


def batched_inputs(one: Recorded, two: Recorded, three: Recorded) -> list[bool]:
    """Return for each input whether its first dimension is the batch's."""
    batched = []
    for first, second, third in zip(one.inputs, two.inputs, three.inputs, strict=True):
        shapes = [list(each.shape) for each in (first, second, third)]
        if shapes[0] == shapes[1] == shapes[2]:
            batched.append(False)
        elif [shape[:1] for shape in shapes] == [[1], [2], [3]] and shapes[0][1:] == shapes[1][1:] == shapes[2][1:]:
            batched.append(True)
        else:
            raise NotExportable("the shapes of the model's arguments follow no batch dimension")
    if not any(batched):
        raise NotExportable("no argument of the model has a batch dimension")
    return batched


def _compile(
    flat: nn.Module, inputs: Sequence[torch.Tensor], batched: list[bool], file: Path, compiler: str, name: str
) -> dict[str, str]:
    """Compile one graph; return which weights of the model its library uses, by internal name."""
    from torch._inductor import aoti_compile_and_package
    from torch.export import Dim, export

    batch = Dim("batch", min=2)
    dynamic = {"leaves": tuple({0: batch} if each else None for each in batched)} if batched else None
    try:
        with torch.no_grad(), quiet() as told:
            program = export(flat, tuple(inputs), dynamic_shapes=dynamic, strict=True)
    except Exception as error:
        raise NotExportable(f"it cannot be exported: {type(error).__name__}") from error
    if any("side effect" in str(each.message) for each in told):
        raise NotExportable("its work leaves traces in Python's objects")
    configs: dict[str, Any] = {"cpp.dynamic_threads": True, "cpp.cxx": (None, compiler)}
    configs |= {"freezing": True} if name == FULL else {"aot_inductor.package_constants_in_so": False}
    package = file.with_suffix(".pt2")
    with torch.no_grad(), quiet():
        aoti_compile_and_package(program, package_path=str(package), inductor_configs=configs)
    with zipfile.ZipFile(package) as archive:
        libraries = [member for member in archive.namelist() if member.endswith(".so")]
        if len(libraries) != 1:
            raise NotExportable(f"AOTInductor wrote {len(libraries)} libraries")
        file.write_bytes(archive.read(libraries[0]))
    package.unlink()
    if name == FULL:
        return {}
    runner = torch._C._aoti.AOTIModelContainerRunnerCpu(str(file), 1)
    names: dict[str, str] = runner.get_constant_names_to_original_fqns()
    held = {inner: outer.removeprefix(f"{MODEL}.") for inner, outer in names.items()}
    if not held.keys() or not set(held.values()) <= weights_of(flat.get_submodule(MODEL)).keys():
        raise NotExportable("it uses constants that are no weights")
    return held


@contextlib.contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Catch torch's warnings, which are about our use of it."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield told
    finally:
        logger.setLevel(level)


def _check(packages: Packages, calls: dict[int, Recorded], batch_size: int) -> float:
    """Run each library; return the drift of full batches from the model's output.

    Raises:
        NotExportable: a library gives no output, or one of other shapes.
    """
    outputs = {}
    for size, call in calls.items():
        args, kwargs = pytree.tree_unflatten(list(call.inputs), call.input_spec)
        with torch.inference_mode():
            found = packages.run(args, kwargs)
        if found is None or [each.shape for each in pytree.tree_leaves(found[0])] != [
            each.shape for each in call.outputs
        ]:
            raise NotExportable("its libraries answer differently")
        outputs[size] = found[0]
    call = calls[batch_size]
    return drift(pytree.tree_unflatten(list(call.outputs), call.output_spec), outputs[batch_size])
