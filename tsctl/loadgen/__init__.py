"""The load generator of `tsctl bench`: a separate process, because it needs an event loop.

`python -P -m tsctl.loadgen` reads one JSON line and the body from stdin (see `order.py`), sends requests, and prints
JSON lines: one `running` every fifth of a second, finally one `done` with the figures. Closing its stdin ends the run
early, with the figures so far.

    order         what is to be sent, where, and how much
    connection    one connection: a request out, an answer in
    repeated      an answer that is known again, so that it need not be parsed
    closed        closed loop: so many clients, each sends when its last answer has come
    open          open loop: requests start when the clock says so, whatever the server does
    timer         a timer that is exact to some ten microseconds
    tally         latencies by bucket, answers by status: figures
    processor     what the generator itself had of a core

Closed or open? A closed loop measures a server's capacity: the load slows down with the server, so the queue of real
users, who send without waiting for others' responses, never forms. The open loop measures that queue: each latency
counts from the intended start of the request, so a stall of the server is charged to all requests it delayed (no
coordinated omission). Requests are spaced as by independent users (Poisson), or evenly on demand.
"""
