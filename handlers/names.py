"""The built-in handlers: their names in an archive, and their classes; other names that archives use.

Importable without torch.
"""

from pathlib import Path

BUILT_IN: dict[str, tuple[str, str]] = {
    "base_handler": ("tsctl.handlers.builtin.base", "BaseHandler"),
    "vision_handler": ("tsctl.handlers.builtin.vision", "VisionHandler"),
    "image_classifier": ("tsctl.handlers.builtin.image_classifier", "ImageClassifier"),
    "object_detector": ("tsctl.handlers.builtin.object_detector", "ObjectDetector"),
    "image_segmenter": ("tsctl.handlers.builtin.image_segmenter", "ImageSegmenter"),
    "text_handler": ("tsctl.handlers.builtin.text", "TextHandler"),
    "text_classifier": ("tsctl.handlers.builtin.text_classifier", "TextClassifier"),
    "vllm_handler": ("tsctl.handlers.builtin.vllm.handler", "VLLMHandler"),
}

# TorchServe's other built-in handlers, each with what does its work instead.
NOT_BUILT_IN: dict[str, str] = {
    "dali_image_classifier": "`image_classifier` takes the same images",
    "trt_llm_handler": "TensorRT-LLM's own server batches its requests, or a handler of yours calls it (FILE.py)",
}

OWN_PACKAGE = "tsctl"  # our only import name: no extra module of a model may have it


def split_handler(handler: str) -> tuple[str, str]:
    """Split a manifest's handler string into module name and function name.

    `a/b/mod.py:func`, `mod.py`, `mod` and `mod:func` are accepted, as in TorchServe: directories and `.py` are dropped,
    and the function defaults to `handle`.
    """
    path, _, function = handler.partition(":")
    module = path.rsplit("/", 1)[-1].removesuffix(".py")
    return module, function or "handle"


# The names that `optimize:` accepts, in the order of application. See handlers/optimize.
OPTIMIZATIONS = (
    "fast_images", "scaled_decode", "fold", "channels_last", "bf16", "int8", "compile", "onnxruntime", "graph",
)  # fmt: skip
COMPILE, ONNX_RUNTIME, GRAPH = "compile", "onnxruntime", "graph"
ONNX_PACKAGES = ("onnxruntime", "onnx")  # what `onnxruntime` needs
NO_OPTIMIZATION = "none"  # excludes also the handler's defaults
# Alone, as a setting: the daemon finds the fastest set by a trial. Before other names, in a worker's order: a trial has
# chosen them, so the worker applies what the trial has kept, and nothing that would delay its first answer.
AUTO = "auto"
LOSSY = ("scaled_decode", "bf16", "int8")  # beyond rounding: `auto` tries those that `optimizeTolerance` names
ALLOWED_OPTIMIZATIONS = f"`{AUTO}`, or a list of {', '.join((NO_OPTIMIZATION, *OPTIMIZATIONS))}"
# Built-in handler → its default optimisations. Exact classes only: a subclass may keep references to parts of the model
# that an optimisation replaces. Not the object detector: the number of boxes depends on thresholds, so the effect of
# rounding on its answers has no measure.
DEFAULT_OPTIMIZATIONS: dict[tuple[str, str], tuple[str, ...]] = {
    BUILT_IN["image_classifier"]: ("fast_images", "fold", "channels_last"),
    BUILT_IN["image_segmenter"]: ("fast_images", "fold", "channels_last"),
}
DEFAULT_ON_GPU = (GRAPH,)  # of a handler that has defaults


def usual_optimizations(handler: str) -> tuple[str, ...]:
    """Return the default optimisations of a handler, as in the manifest."""
    return DEFAULT_OPTIMIZATIONS.get(BUILT_IN.get(handler, ("", "")), ())


def parse_optimizations(value: object) -> tuple[str, ...]:
    """Parse `optimize:`: a list of names, or comma-separated text.

    Returns:
        The names, each once, in the order of `OPTIMIZATIONS`, preceded by `none` if named; or `auto` alone.

    Raises:
        ValueError: the value is neither, contains an unknown name, or another one beside `auto`; the message lists the
            allowed names.
    """
    names = value.split(",") if isinstance(value, str) else value
    known = (NO_OPTIMIZATION, *OPTIMIZATIONS)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(ALLOWED_OPTIMIZATIONS)
    asked = {name.strip() for name in names} - {""}
    if asked == {AUTO}:
        return (AUTO,)
    if AUTO in asked:
        lossy = ", ".join(LOSSY)
        raise ValueError(f"`{AUTO}` without other names; of {lossy} it tries those that `optimizeTolerance` names")
    if not asked <= set(known):
        raise ValueError(ALLOWED_OPTIMIZATIONS)
    return tuple(name for name in known if name in asked)


def sample_files(model_dir: Path, named: object) -> list[Path]:
    """Return the paths that `warmup` names, which need not exist; none if it is neither a name nor a list of names."""
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return []
    found = [model_dir / Path(name).name for name in names]  # archives are flat
    if len(found) == 1 and found[0].is_dir():
        return sorted(file for file in found[0].iterdir() if file.is_file())
    return found
