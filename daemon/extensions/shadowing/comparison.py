"""The comparison of two answers to one request: of the version that answered the client, and of the shadow."""

import json
import math
from typing import Any

from tsctl.daemon.core.endings import Ending, ending_of_status
from tsctl.daemon.core.job import Reply
from tsctl.daemon.models.routing.copies import Agreement

RELATIVE, ABSOLUTE = 1e-3, 1e-6
MOST_JSON = 256 * 1024  # bytes of an answer that is read as JSON; reading takes at most some milliseconds


def compare(answered: Reply, shadow: Reply) -> Agreement:
    """Compare two whole answers; headers do not count."""
    if is_failure(shadow) and not is_failure(answered):
        return Agreement.FAILED
    if answered.status != shadow.status or bool(answered.error) != bool(shadow.error):
        return Agreement.DIFFERENT
    if answered.body == shadow.body or answered.error:  # errors name their request
        return Agreement.SAME
    if max(len(answered.body), len(shadow.body)) > MOST_JSON:
        return Agreement.DIFFERENT
    try:
        documents = json.loads(answered.body), json.loads(shadow.body)
        return Agreement.CLOSE if are_close(*documents) else Agreement.DIFFERENT
    except (ValueError, RecursionError):
        return Agreement.DIFFERENT


def is_failure(reply: Reply) -> bool:
    """Return whether an answer is the fault of the version and not of the request."""
    return ending_of_status(reply.status) is Ending.FAILED


def is_comparable(reply: Reply) -> bool:
    """Return whether an answer to a client says how a shadow should answer: not an error, whosever it is."""
    return ending_of_status(reply.status) is Ending.ANSWERED


def are_close(one: Any, other: Any) -> bool:
    """Return whether two JSON documents differ in nothing but the last digits of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_close(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_close, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (one != one and other != other)
    return bool(one == other)
