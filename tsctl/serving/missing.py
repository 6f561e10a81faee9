"""The remedy for a module that is not found: a file of the user's own, a known package, or a question.

A name that is imported is seldom the name of what is installed, and anybody may own that name: nothing that is not
known is proposed to pip.
"""

import re
import sys
from difflib import get_close_matches
from pathlib import Path

# The names of modules, and of the packages that have them.
PACKAGES = {
    "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "docx": "python-docx",
    "dotenv": "python-dotenv", "faiss": "faiss-cpu", "fitz": "PyMuPDF", "jwt": "PyJWT", "PIL": "pillow",
    "sentence_transformers": "sentence-transformers", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "whisper": "openai-whisper", "yaml": "PyYAML",
} | {
    name: name
    for name in (
        "accelerate", "diffusers", "einops", "librosa", "lightning", "numpy", "onnx", "onnxruntime", "pandas", "peft",
        "pydantic", "requests", "safetensors", "scipy", "soundfile", "spacy", "tiktoken", "timm", "tokenizers",
        "torch", "torchaudio", "torchvision", "transformers", "ultralytics",
    )
}  # fmt: skip
_RELATIVE = re.compile(r"attempted relative import (?:with no known parent package|beyond top-level package)")
_MISSING = re.compile(r"No module named '(?P<name>[^']+)'(?P<hidden>; '[^']+' is not a package)?")
_CLOSE = 0.8


def hint_for_import(error: str, folder: Path | None) -> str:
    """Return the remedy for an import that failed; empty for another error.

    Args:
        folder: the folder of the user's files; None for an archive, or if there is none.
    """
    if _RELATIVE.search(error):
        above = f", or serve `{folder.name}.MODULE:FUNCTION` from `{folder.parent}`" if folder is not None else ""
        return f"a file served alone is in no package: write `from helper import …` instead of `from .helper …`{above}"
    found = _MISSING.search(error)
    if found is None:
        return ""
    name, _, inner = found["name"].partition(".")
    if found["hidden"]:
        return f"a file `{name}.py` of yours hides the package `{name}`: rename it"
    if inner:
        return f"`{name}` was found, and has no module `{found['name']}`: mend the import, or try another version of it"
    own = None if folder is None else _own_module(name, folder)
    if own is not None:
        return own
    if name in PACKAGES:
        return f"install the package: `{sys.executable} -m pip install {PACKAGES[name]}`"
    near = get_close_matches(name, PACKAGES, n=1, cutoff=_CLOSE)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"is `{name}` yours? Put its file beside the handler; else install the package that has it"


def _own_module(name: str, folder: Path) -> str | None:
    """Return the sentence on a module of the user's; None if there is no file of this name, or a similar one."""
    if folder.name == name:
        return f"`{name}` is the folder of these files: serve `{name}.MODULE:FUNCTION` from the folder above it"
    for place in (folder.parent, *sorted(_folders(folder))):
        for file in (place / f"{name}.py", place / name / "__init__.py"):
            if file.is_file():
                return f"`{file}` is not beside the handler: move it there, or put its folder into PYTHONPATH"
    beside = [each.stem for each in _entries(folder) if each.suffix == ".py"] + [each.name for each in _folders(folder)]
    near = get_close_matches(name, beside, n=1, cutoff=_CLOSE)
    return f"did you mean `{near[0]}`, which is beside it?" if near else None


def _folders(folder: Path) -> list[Path]:
    return [each for each in _entries(folder) if each.is_dir() and each.name.isidentifier()]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
