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
