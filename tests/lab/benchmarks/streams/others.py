"""Streams that run while another one begins: `python -m tests.lab.benchmarks.streams.others PORT COUNT TOKENS`.

In a process of their own, so that they do not delay the one that is measured. Prints a line when they have begun.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.benchmarks.streams.client import Clients


@contextmanager
def others(port: int, count: int, tokens: int) -> Iterator["subprocess.Popen[str]"]:
    """Run so many streams of these tokens beside the block, which should end first; they are ended with it."""
    command = [sys.executable, "-m", __spec__.name, str(port), str(count), str(tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def main(arguments: list[str]) -> None:
    port, count, tokens = map(int, arguments)
    clients = Clients(port, count)
    clients.run("engine", 10)
    print("begun", flush=True)
    clients.run("engine", tokens)


if __name__ == "__main__":
    main(sys.argv[1:])
