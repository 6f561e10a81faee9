"""The load generator of `tsctl bench`: a separate process, because it needs an event loop.

`python -P -m tsctl.loadgen` reads one JSON line and the body from stdin (see `order.py`), sends requests, and prints
JSON lines: one `running` every fifth of a second, finally one `done` with the figures. Closing its stdin ends the run
early, with the figures so far.

    order         the request, its destination, and the limits of the run
    connection    one connection: a request out, a response in
    repeated      recognizes repeated responses, which need no parser
    closed        closed loop: a number of clients, each sends after its last response
    open          open loop: requests start at scheduled times, independent of the server
    timer         a timer that is exact to some ten microseconds
    tally         latencies by bucket, responses by status: the figures
    processor     the generator's own CPU time

Closed or open? A closed loop measures a server's capacity: the load slows down with the server, so the queue of real
users, who send without waiting for others' responses, never forms. The open loop measures that queue: each latency
counts from the intended start of the request, so a stall of the server is charged to all requests it delayed (no
coordinated omission). Requests are spaced as by independent users (Poisson), or evenly on demand.
"""
