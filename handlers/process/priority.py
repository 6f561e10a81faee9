"""The lowest priority: a process that runs only where no other wants the core.

SCHED_IDLE (sched(7)) does that among the threads of one scheduling group. With autogroups (`sched_autogroup_enabled`,
the usual case without a cgroup for each service) every session is a group of its own, and groups share the cores
alike, whatever their threads are: then the group has to step back, too.
"""

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "TSWORKER_BACKGROUND"  # in the environment of workers that run beside those that serve
_LOWEST = "19"  # as nice(1)


def step_back(autogroup: Path = Path("/proc/self/autogroup")) -> None:
    """Lower the priority of this process, and of all that it starts; and that of its session, if it leads one."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():  # else the others of the session would step back, too
        with suppress(OSError):  # without autogroups there is no such file
            autogroup.write_text(_LOWEST)


def step_back_if_asked() -> None:
    """Step back if the environment says so."""
    if os.environ.get(VARIABLE):
        step_back()
