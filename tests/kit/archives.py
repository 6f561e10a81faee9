"""Archives that can be registered, and their files."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.daemon.marfile import MANIFEST


def manifest_document(name: str = "m", version: str = "1.0", **model: Any) -> dict[str, Any]:
    model = {"modelName": name, "modelVersion": version, "handler": "handler.py"} | model
    return {"runtime": "python", "model": model}


def model_files(name: str = "m", version: str = "1.0", **model: Any) -> dict[str, bytes]:
    """Make the files of an archive that can be registered; `model` changes its manifest."""
    document = json.dumps(manifest_document(name, version, **model)).encode()
    return {MANIFEST: document, "handler.py": b"def handle(data, context): return data\n"}


def write_files(directory: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


def write_mar(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time: an archive is named by its bytes
    return path
