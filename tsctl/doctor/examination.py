"""All checks, in the order in which they are shown."""

from collections.abc import Callable

from tsctl.doctor import hardware, surroundings
from tsctl.doctor.facts import DoctorFacts
from tsctl.doctor.verdict import PROBLEM, Verdict

CHECKS: dict[str, Callable[[DoctorFacts], Verdict]] = {
    "installation": surroundings.installation,
    "daemon": surroundings.daemon,
    "service": surroundings.service,
    "configuration": surroundings.configuration,
    "addresses": surroundings.ports,
    "permissions": surroundings.permissions,
    "disk": surroundings.disk,
    "cores": hardware.cores,
    "processor": hardware.processor,
    "memory": hardware.memory,
    "GPU": hardware.gpu,
    "shared memory": hardware.shared_memory,
    "open files": surroundings.files,
    "processes": surroundings.processes,
    "clock": surroundings.clock,
}


def examine(facts: DoctorFacts) -> dict[str, Verdict]:
    """Return the answer of each check by its name."""
    return {name: check(facts) for name, check in CHECKS.items()}


def breaks_serving(verdicts: dict[str, Verdict]) -> bool:
    """Return whether something would break serving."""
    return any(each.state == PROBLEM for each in verdicts.values())
