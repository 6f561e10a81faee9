"""The load generator of `tsctl bench`: a separate process, because it needs an event loop.

`python -P -m tsctl.loadgen` reads one JSON line and the body from stdin (see `order.py`), sends requests, and prints
JSON lines: one `running` every fifth of a second, finally one `done` with the figures. Closing its stdin ends the run
early, with the figures so far.

    order         the request, its destination, and the limits of the run
    connection    one connection: a request out, a response in; and the first request, before the run
    loop          what the loops have in common
    loops         open loop: requests start at scheduled times; closed loop: each client sends after its last response
    calls         both over gRPC
    tally         latencies by bucket, responses by status, the generator's own CPU time: the figures

Closed or open? A closed loop measures a server's capacity: the load slows down with the server, so the queue of real
users, who send without waiting for others' responses, never forms. The open loop measures that queue: each latency
counts from the intended start of the request, so a stall of the server is charged to all requests it delayed (no
coordinated omission). Requests are spaced as by independent users (Poisson), or evenly on demand.
"""
