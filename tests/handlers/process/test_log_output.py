"""Where a handler's log records go, and that each goes there once; in a process of its own, as pytest has handlers."""

import subprocess
import sys

from tests.kit.said import said_in

BEGIN = """
import io, logging
from tsctl.handlers.own_process import log_to_output
log_to_output()
log = logging.getLogger("talk")

def print_with(name):
    own = logging.StreamHandler()
    own.setLevel(logging.WARNING)
    own.setFormatter(logging.Formatter("own %(message)s"))
    logging.getLogger(name).addHandler(own)

"""


@said_in("printed.txt")
def test_where_records_go(given: str) -> str:
    command = [sys.executable, "-c", BEGIN + given]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return "\n".join(
        [f"out {line}" for line in ran.stdout.splitlines()] + [f"err {line}" for line in ran.stderr.splitlines()]
    )
