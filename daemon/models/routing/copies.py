"""The results of the copies of requests that a shadow gets, in the words of counters and documents.

same        the shadow's answer has the same status and bytes
close       JSON of one shape, whose numbers differ by at most a thousandth, as of another order of additions
different   anything else
failed      the shadow failed and the other version did not
dropped     no idle time in time, the shadow refused, or there was no room for the answers
"""

from enum import Enum


class Agreement(Enum):
    """How much the answer of a shadow is like that of the version that answered the client."""

    SAME = "same"
    CLOSE = "close"
    DIFFERENT = "different"
    FAILED = "failed"


DROPPED = "dropped"
RESULTS = (*(each.value for each in Agreement), DROPPED)
