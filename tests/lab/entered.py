"""The product's files that a registration and a warm prediction enter: a profile function in a real daemon sees them.

A file is entered when one of its functions is called, by another call than those that timers make as well while there
is nothing to do; an import alone does not count. A copy of this file is the `sitecustomize` of the daemon's processes.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = "ENTERED_FOLDER"  # in the environment: where the link `window` names the file to which calls are written
HANDLER = 'def handle(data, context):\n    """Add numbers."""\n    return [sum(row["body"]) for row in data]\n'


def note(frame: Any, event: str, _: Any) -> None:
    entered = frame.f_code.co_filename
    if event == "call" and "/tsctl/" in entered and frame.f_code.co_flags & 1:  # CO_OPTIMIZED: a function's
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        with open(f"{os.environ[FOLDER]}/window", "a") as file:
            file.write(f"{caller if '/tsctl/' in caller else ''}\t{entered}\n")


def measure(tree: Path) -> tuple[set[str], set[str]]:
    """Return what the registration of a handler of three lines enters, and a prediction, each until 0.1 s after it."""
    from tests.e2e.served import Served

    with tempfile.TemporaryDirectory(prefix="entered-") as name, Served(Path(name)) as served:
        folder, calls = Path(name), list[set[str]]()
        served.environment |= {"PYTHONPATH": f"{folder}{os.pathsep}{tree}", FOLDER: name}
        (folder / "window").symlink_to(os.devnull)
        (folder / "sums.py").write_text(HANDLER)
        shutil.copy(__file__, folder / "sitecustomize.py")

        def predict() -> None:
            assert served.ask("/predictions/sums", b"[1, 2.5]", Content_Type="application/json").json == 3.5

        served.start()
        register = f"/models?url={folder}/sums.py&initial_workers=1&synchronous=true"
        for act in (lambda: served.command("POST", register), lambda: time.sleep(1.5), *[predict] * 20):
            (folder / f"calls-{len(calls)}").touch()
            (folder / "next").symlink_to(f"calls-{len(calls)}")
            (folder / "next").replace(folder / "window")
            act()
            time.sleep(0.1)
            calls.append({*(folder / f"calls-{len(calls)}").read_text().splitlines()})
    registered, idle, *_, predicted = calls
    files = [{line.partition("\t")[2] for line in found - idle} for found in (registered, predicted)]
    return files[0], files[1]


if __name__ == "sitecustomize" and FOLDER in os.environ:
    threading.setprofile(note)
    sys.setprofile(note)
