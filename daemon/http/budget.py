"""The header `x-request-deadline-ms`: how long its client will wait for a request's answer."""

from daemon.errors import BadRequest

HEADER = "x-request-deadline-ms"
PRIORITY_HEADER = "x-request-priority"
_LONGEST = 10**12  # milliseconds; more is no limit, and timers do not take any number


def read_budget(text: str) -> float:
    """Give seconds.

    Raises:
        BadRequest: it is not a whole number of milliseconds from 1.
    """
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit() and digits):
        raise BadRequest(f"{HEADER} is `{text}`, and should be a whole number of milliseconds, at least 1.")
    return min(int(digits[:13]), _LONGEST) / 1000
