"""When a worker gets a batch while it still runs one.

The worker then starts the second without waking anybody: about 45 µs each way saved. But what is
committed cannot go to another worker that comes free earlier, nor wait for company. So it is always a
full batch, and only while there is one for every ready worker anyway; requests of low priority, which
others may still overtake, do not count.
"""

import math

from daemon.batching.collector import Facts

MARGIN = 2.0  # batches: the one that runs, and this one, have to end before its deadline


def may_send_ahead(facts: Facts, ready: int, batch_size: int, seconds: float, now: float) -> bool:
    """Say whether a full batch may go to a busy worker.

    Args:
        ready: workers with the model loaded, at least 1.
        batch_size: at least 1.
        seconds: that a full batch is expected to take; 0.0 while nothing is known: then no deadline is risked.
        now: on the clock of `facts`.
    """
    if facts.deadline < math.inf and (not seconds or facts.deadline - now < MARGIN * seconds):
        return False
    return facts.waiting >= ready * batch_size
