"""The last lines of a version's log, for the page: they are read from the files of the state directory."""

from pathlib import Path
from typing import Any

from tsctl.logs.merging import merged
from tsctl.logs.sources import model_source

LINES = 100
LONGEST = 2000  # characters of a line


def log_document(state_dir: Path, name: str, version: str) -> dict[str, Any]:
    """Return the last lines, the oldest first.

    Args:
        name, version: without a slash; the version may be one that has written nothing.
    """
    lines = [line.shown(named=False) for line in merged([model_source(state_dir, name, version)], LINES, None)]
    return {"lines": [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines]}
