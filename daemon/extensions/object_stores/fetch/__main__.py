"""`python -m tsctl.daemon.extensions.object_stores.fetch`: see the package."""

import json
import os
import sys
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any

from tsctl.daemon.extensions.object_stores.fetch.reading import Progress, download, open_object
from tsctl.daemon.extensions.object_stores.fetch.stores import FetchError


def main() -> None:
    """Read the order, download, and tell the end."""
    order = json.loads(sys.stdin.readline())
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(2, 1)  # a package that prints does not print among the events

        def tell(event: dict[str, Any]) -> None:
            told.write(json.dumps(event) + "\n")
            told.flush()

        tell(
            _download(
                order["url"],
                Path(order["file"]),
                order["limit"],
                lambda done, total: tell({"done": done, "total": total}),
                Path(order["tag"]),
            )
        )


def _download(url: str, file: Path, limit: int, progress: Progress, tag: Path) -> dict[str, Any]:
    """Return the event of the end, with the failure in words; empty for none."""
    try:
        download(open_object(url), file, limit, progress, tag)
    except FetchError as error:
        return {"end": str(error)}
    except Exception as error:  # noqa: BLE001 - the clients' errors have no class in common
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, FileNotFoundError) or status == 404:
            return {"end": "there is no such object"}
        if isinstance(error, PermissionError) or status in (401, 403):
            return {"end": f"not allowed ({_first_line(error)}): credentials are read from the daemon's environment"}
        told: dict[str, Any] = {"end": _first_line(error)}
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            told["full"] = error.errno
        return told
    return {"end": ""}


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    main()
