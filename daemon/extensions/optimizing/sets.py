"""The versions that are tried, and the sets of optimisations that a trial compares.

    `optimize: auto`                                          tried, once it has answered
    nothing said, and the handler has defaults of its own     tried, once it has had traffic: `auto_optimize`
    names, `none`, or no names (`optimize: []`)               never

Optimisations beyond rounding are tried where `optimizeTolerance` names them, within their tolerances.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tsctl.daemon.extensions.optimizing import BUILT_IN as UNASKED
from tsctl.handlers.names import AUTO, BUILT_IN, COMPILE, DEFAULT_OPTIMIZATIONS, LOSSY, NO_OPTIMIZATION, ONNX_RUNTIME


def has_defaults(handler: str) -> bool:
    """Return whether a handler, as in the manifest, has default optimisations."""
    return BUILT_IN.get(handler) in DEFAULT_OPTIMIZATIONS


def is_asked(optimize: Sequence[str] | None) -> bool:
    return optimize == (AUTO,)


def is_tried(optimize: Sequence[str] | None, handler: str, wish: str) -> bool:
    """Return whether a version has, or would have, a trial.

    Args:
        optimize: as in ModelSettings.
        wish: the daemon's setting `auto_optimize`.
    """
    return is_asked(optimize) or (optimize is None and wish == UNASKED and has_defaults(handler))


def lossy_of(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the lossy optimisations that `model-config.yaml` tolerates, each with its largest drift."""
    named = document.get("optimizeTolerance")
    if not isinstance(named, dict):
        return {}
    return {name: float(named[name]) for name in LOSSY if type(named.get(name)) in (int, float) and named[name] > 0}


def sets_to_try(
    *, defaults: bool, compiler: bool, onnxruntime: bool = False, lossy: Collection[str]
) -> list[tuple[str, ...]]:
    """Return the sets, by their names beside the handler's defaults; the first is the defaults alone.

    Args:
        defaults: the handler has some: then the plain model may be the faster one.
        onnxruntime: what exports a model and runs it is installed.

    Returns:
        Nothing if there is no set beside the defaults.
    """
    named: list[tuple[str, ...]] = [(COMPILE,)] if compiler else []
    if onnxruntime:
        named.append((ONNX_RUNTIME,))
    if "bf16" in lossy:
        named += [("bf16",), ("bf16", COMPILE)] if compiler else [("bf16",)]
    if "int8" in lossy:
        named.append(("int8",))
    if "scaled_decode" in lossy:  # reading is another stage, and goes with every model
        named += [("scaled_decode",), *(("scaled_decode", *names) for names in named)]
    plain = [(NO_OPTIMIZATION,)] if defaults else []
    return [(), *plain, *named] if plain or named else []
