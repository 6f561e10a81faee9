"""The built-in handlers: the name an archive gives, and where the class is.

A constant table, importable without torch.
"""

BUILT_IN: dict[str, tuple[str, str]] = {
    "base_handler": ("handlers.defaults.base", "BaseHandler"),
    "vision_handler": ("handlers.defaults.vision", "VisionHandler"),
    "image_classifier": ("handlers.defaults.image_classifier", "ImageClassifier"),
    "object_detector": ("handlers.defaults.object_detector", "ObjectDetector"),
    "image_segmenter": ("handlers.defaults.image_segmenter", "ImageSegmenter"),
    "text_handler": ("handlers.defaults.text", "TextHandler"),
    "text_classifier": ("handlers.defaults.text_classifier", "TextClassifier"),
}

# Our own import packages: a model's further modules may not have these names.
RESERVED_MODULES = frozenset({"daemon", "handlers", "tsctl"})


def split_handler(handler: str) -> tuple[str, str]:
    """Split a manifest's handler string into module name and function name.

    `a/b/mod.py:func`, `mod.py`, `mod` and `mod:func` are all understood, as TorchServe does:
    directories and `.py` are dropped, and the function defaults to `handle`.
    """
    path, _, function = handler.partition(":")
    module = path.rsplit("/", 1)[-1].removesuffix(".py")
    return module, function or "handle"


# What `optimize:` may name, in the order in which it is applied. See handlers/optimize.
OPTIMIZATIONS = ("fast_images", "fold", "channels_last", "bf16", "compile")
COMPILE = "compile"
NO_OPTIMIZATION = "none"  # first in the list: not even what the handler gets by default


def parse_optimizations(value: object) -> tuple[str, ...]:
    """Read `optimize:`: a list of names, or text with commas.

    Returns:
        The names, each once, in the order of `OPTIMIZATIONS`; `none` comes first if it is named.

    Raises:
        ValueError: it is something else, or names what there is not; the message says what is allowed.
    """
    names = value.split(",") if isinstance(value, str) else value
    known = (NO_OPTIMIZATION, *OPTIMIZATIONS)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"a list of {', '.join(known)}")
    asked = {name.strip() for name in names} - {""}
    if not asked <= set(known):
        raise ValueError(f"a list of {', '.join(known)}")
    return tuple(name for name in known if name in asked)
