"""The memory of processes, from /proc."""

import logging
import os
from pathlib import Path
from typing import TextIO

_PAGE = os.sysconf("SC_PAGE_SIZE")


def get_cpu_usage(pid: int | str) -> int:
    """Return the resident memory of a process in bytes, 0 if there is no such process; the name is TorchServe's."""
    try:
        return int(Path(f"/proc/{int(pid)}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError):
        logging.error("there is no process %s", pid)
        return 0


def check_process_mem_usage(stdin: TextIO) -> None:
    """Read one line of process numbers, separated by commas, and log `pid:bytes` for each."""
    for pid in filter(None, stdin.readline().strip().split(",")):
        logging.info("%s:%d", pid, get_cpu_usage(pid))
