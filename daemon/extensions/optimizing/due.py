"""When a trial begins: after the traffic that makes it worth it, and in a quiet moment.

A trial costs about `COST` seconds of the cores. It pays where the time that it saves is longer: so a version for which
nobody asked is tried when a gain of `LIKELY_GAIN` would already have saved as much. Who has asked waits for an answer
only. A daemon that is never quiet begins after `PATIENCE`, with the rest that requests leave of the cores.
"""

from typing import NamedTuple

from tsctl.daemon.setting_values import size_text

COST = 60.0  # seconds; about what a trial of ResNet-18 takes on two cores
LIKELY_GAIN = 0.05
LEAST_BUSY = COST / LIKELY_GAIN  # seconds that the workers have run batches
QUIET = 3.0  # seconds without a request
PATIENCE = 600.0
COMPILING = 1 << 30  # bytes that a compiler takes, and libraries in a process of their own
PAUSES = (600.0, 3600.0)  # seconds after the first failure, and the second; after the third there is no further attempt
ATTEMPTS = len(PAUSES) + 1


class Moment(NamedTuple):
    """The facts about one version, times in seconds.

    Attributes:
        asked: `optimize: auto` was said.
        ready: all workers are ready, and the version is not about to be replaced.
        answered: batches that its workers have answered.
        busy: how long they took, in sum.
        idle: since a request of any version came or was answered.
        waiting: since all but idle time was there.
        pause: left until another attempt.
        elsewhere: another version's trial runs.
    """

    asked: bool
    ready: bool
    answered: int
    busy: float
    idle: float
    waiting: float
    pause: float
    elsewhere: bool


def is_worth_it(moment: Moment) -> bool:
    """Return whether all but the right moment is there."""
    enough = moment.answered > 0 if moment.asked else moment.busy >= LEAST_BUSY
    return moment.ready and enough and moment.pause <= 0


def waits_for(moment: Moment) -> str:
    """Return the event that a trial waits for, in words; empty if it is to begin now."""
    if not moment.ready:
        return "all workers to be ready"
    if moment.pause > 0:
        return f"another attempt, in {moment.pause:.0f} s"
    if moment.asked and not moment.answered:
        return "the first answer"
    if not is_worth_it(moment):
        return f"more traffic: its workers have been busy for {moment.busy:.0f} of {LEAST_BUSY:.0f} s"
    if moment.elsewhere:
        return "the trial of another model"
    if moment.idle < QUIET and moment.waiting < PATIENCE:
        return f"{QUIET:g} s without a request"
    return ""


def short_of_memory(takes: int, left: int) -> str:
    """Return that a trial has no room, in words; empty if it has.

    Args:
        takes: bytes of the largest worker: a set is compared in a process with two models, beside the set of now.
        left: bytes that are left on the machine, or in the daemon's cgroup.
    """
    needed = 3 * takes + COMPILING
    if left >= needed:
        return ""
    return f"memory: a trial takes about {size_text(needed)}, and {size_text(left)} are left"
