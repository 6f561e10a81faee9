"""The reasons for which batches are sent, and their meanings: the core's; extensions add theirs (daemon/tables.py)."""

CORE_REASONS: dict[str, str] = {
    "full": "there were enough requests for a whole batch",
    "half": "half of the clients: the others' requests run while these are answered",
    "probe": "another number of requests, to learn which has the best rate",
    "delay": "a request had been held for the maximum delay",
    "deadline": "a request would otherwise be answered too late",
    "stopping": "the version is being shut down",
    "nobody_left": "all clients that could join were already waiting",
    "no_gain": "waiting would have cost more than it saved",
    "split": "cut evenly over several idle workers",
    "ahead": "sent to a worker that was still busy with the batch before",
    "at_once": "the policy does not wait",
    "place": "a worker that runs requests on their own had a free place",
    "retry": "a request whose worker died or hung, alone",
    "solo": "a request for the handler's description, alone",
}
