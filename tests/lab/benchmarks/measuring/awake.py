"""Keep the cores of a virtual machine awake: `python -m tests.lab.benchmarks.measuring.awake CORE` does it for one.

A core that has nothing to do halts. A virtual one then gives its real one away: the wake-up takes a tenth of a
millisecond, and the kernel takes such a core for one that is not there (vcpu_is_preempted), so that a daemon that a
client has woken waits on that client's core. A request goes through three such wake-ups, each of them the machine's.
The process here has the lowest priority of all: whatever else there is to run has the core at once.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tsctl.handlers.own_process import step_back


@contextmanager
def cores_awake() -> Iterator[None]:
    """Keep all cores that this process may use awake while the block runs."""
    with ExitStack() as stack:
        for core in os.sched_getaffinity(0):
            command = [sys.executable, "-m", "tests.lab.benchmarks.measuring.awake", str(core)]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
            stack.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline(), "it ended"
        yield


def main(core: int) -> None:
    parent = os.getppid()
    os.sched_setaffinity(0, {core})
    step_back()
    print("awake", flush=True)
    while os.getppid() == parent:  # a parent that was killed cannot end this process
        for _ in range(100_000):
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
