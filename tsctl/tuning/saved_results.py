"""The results of `tsctl tune` in the state directory: a file for each version."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tsctl.daemon import paths

LARGEST = 1 << 20  # bytes of a file that is read; a result has some 20 kB
MOST = 200  # results that are read


def save(state_dir: Path, found: dict[str, Any]) -> Path:
    """Write a result in place of the version's last one, readable by its owner alone; return the file.

    Raises:
        OSError: the file cannot be written.
        paths.PathError: the directory cannot be used.
    """
    directory = paths.tuned_dir(state_dir)
    paths.make_private(directory, strict=False)
    handle, name = tempfile.mkstemp(dir=directory, prefix=".", suffix=".json")  # 0600
    try:
        with open(handle, "w") as file:
            json.dump(found, file)
        target = directory / f"{found['model']}@{found['version']}.json"
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target


def saved(state_dir: Path) -> list[dict[str, Any]]:
    """Return the results of all versions, the latest first; a file that is no result is left out."""
    found = []
    for file in sorted(paths.tuned_dir(state_dir).glob("[!.]*@*.json"))[:MOST]:
        try:
            with file.open("rb") as opened:
                text = opened.read(LARGEST + 1)
            if len(text) > LARGEST:
                continue
            document = json.loads(text)
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get("time"), int | float):
            found.append(document)
    return sorted(found, key=lambda each: -each["time"])
