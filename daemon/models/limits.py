"""What a worker of a model may take: of the machine `maxMemory` and `cpus`, as people write them; and of time."""

import os
import re
from collections.abc import Mapping
from typing import Any

from daemon.errors import BadRequest
from daemon.settings import parse_size
from daemon.workers.processes.memory import size_text as size_text  # the routes find it here

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def parse_memory(value: Any) -> int:
    """Read `4GiB`, or a number of bytes.

    Raises:
        ValueError: it says what it should be.
    """
    what = "a size, such as 4GiB"
    if type(value) is int and value > 0:
        return value
    try:
        size = parse_size(value) if isinstance(value, str) else 0
    except ValueError:
        raise ValueError(what) from None
    if not size:
        raise ValueError(what)
    return size


def parse_cpus(value: Any) -> tuple[int, ...]:
    """Read processors as taskset(1) does: `0-3,8`, one number, or a list of numbers.

    Raises:
        ValueError: it says what it should be.
    """
    if type(value) is int:
        value = str(value)
    elif isinstance(value, list) and value and all(type(each) is int for each in value):
        value = ",".join(map(str, value))
    found: set[int] = set()
    for part in value.split(",") if isinstance(value, str) else [""]:
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[1]) > int(match[2] or match[1]):
            raise ValueError("processors by number, such as 0-3 or 0,2")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def missing_cpus(cpus: tuple[int, ...]) -> str | None:
    """Say which processors this process may use, if some of `cpus` are not among them."""
    usable = os.sched_getaffinity(0)
    return None if usable.issuperset(cpus) else cpus_text(tuple(sorted(usable)))


def cpus_text(cpus: tuple[int, ...]) -> str:
    """Write them as `parse_cpus` reads them: `0-3,8`."""
    parts: list[str] = []
    first = last = -2
    for cpu in (*cpus, -2):
        if cpu == last + 1:
            last = cpu
            continue
        if first >= 0:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = cpu
    return ",".join(parts)


# Setting → key in the archive. 0 is not "none" here: every worker would be killed at its first batch, or before.
TIMEOUTS = {"response_timeout": "responseTimeout", "startup_timeout": "startupTimeout"}


def check_timeouts(asked: Mapping[str, Any]) -> None:
    """Raises: BadRequest, if one of them, in seconds, is 0."""
    for name in TIMEOUTS:
        if asked.get(name) == 0:
            flag = f"--{name.replace('_', '-')}"
            raise BadRequest(
                f"{name} is 0, and should be more than 0 seconds; without one the daemon's own counts (`{flag}`)."
            )


def without_zero_timeouts(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Leave out timeouts of 0, which earlier versions accepted; return the rest, and the names of those."""
    dropped = [name for pair in TIMEOUTS.items() for name in pair if name in values and values[name] == 0]
    return {name: value for name, value in values.items() if name not in dropped}, dropped
