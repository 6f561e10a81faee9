"""Runs in each Python process of a counted daemon: writes down the product's files of which it calls functions.

Installed as `sitecustomize`, so that the daemon, its templates and its workers have it before their own first line.
Only the standard library is imported. A byte of a shared file is the number of the window that is recorded, 0 for
none; a process writes a file's name once in each window for each file that calls it, and once for all others, `-`:

    WINDOW PROCESS CALLER FILE      3 daemon daemon/http/connection.py daemon/http/exchange.py

An import alone does not count: the code of modules and classes is left out.
"""

import mmap
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

WINDOW, ENTERED, TREE = "COUNTER_WINDOW", "COUNTER_ENTERED", "COUNTER_TREE"  # in the environment: paths
ROOMS = ("daemon/", "handlers/", "tsctl/")
FUNCTION = 1  # inspect.CO_OPTIMIZED: code of a module or a class is without; `inspect` itself would import many


def product_file(path: str, tree: str) -> str:
    """Return the name of a file of the product, as its place in the tree has it; empty for any other file."""
    name = path.removeprefix(f"{tree}/")
    if name == path or not name.startswith(ROOMS):
        return ""
    linked = name.removeprefix("tsctl/")
    return linked if linked.startswith(ROOMS[:2]) else name


def process_name(arguments: list[str], *, forked: bool) -> str:
    """Return what a process is, by the command that has started it or the process that it was forked from."""
    if "tsctl.handlers.template" in arguments:
        return "worker" if forked else "template"
    if "tsctl.handlers.worker" in arguments:
        return "worker"
    return "daemon" if "tsctl.daemon" in arguments else "other"


def record(tree: str, window_file: str, entered: str) -> None:
    """Record from here on, in all threads, and in processes that are forked."""
    with open(window_file, "rb") as shared:
        window = mmap.mmap(shared.fileno(), 1, access=mmap.ACCESS_READ)
    written = os.open(entered, os.O_WRONLY | os.O_APPEND)
    first = os.getpid()
    seen: set[tuple[int, int, str, str]] = set()

    @cache
    def name_of(path: str) -> str:
        return product_file(path, tree)

    def note(frame: Any, event: str, _: Any) -> None:
        number = window[0]
        if not number or event != "call" or not frame.f_code.co_flags & FUNCTION:
            return
        name = name_of(frame.f_code.co_filename)
        if not name:
            return
        caller = (frame.f_back and name_of(frame.f_back.f_code.co_filename)) or "-"
        pid = os.getpid()
        if (number, pid, caller, name) not in seen:
            seen.add((number, pid, caller, name))
            process = process_name(sys.orig_argv, forked=pid != first)
            os.write(written, f"{number} {process} {caller} {name}\n".encode())

    threading.setprofile(note)
    sys.setprofile(note)


if __name__ == "sitecustomize" and Path(os.environ.get(WINDOW, "")).is_file():
    record(os.environ[TREE], os.environ[WINDOW], os.environ[ENTERED])
