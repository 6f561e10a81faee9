"""The load generator of `tsctl bench`: a process of its own, since it needs an event loop.

`python -P -m tsctl.loadgen` reads one JSON line and the body from stdin (`order.py` says what), sends
requests, and prints JSON lines: one `running` every fifth of a second, at last one `done` with what
was counted. It ends early, with what it has so far, when its stdin is closed.

    order         what is to be sent, where, and how much
    connection    one connection: a request out, an answer in
    repeated      an answer that is known again, so that it need not be parsed
    closed        closed loop: so many clients, each sends when its last answer has come
    open          open loop: requests start when the clock says so, whatever the server does
    timer         a timer that is exact to some ten microseconds
    tally         latencies by bucket, answers by status: figures
    processor     what the generator itself had of a core

Closed or open? A closed loop measures what a server can do: it slows down with it. So it never sees
the queue that real users would form, whose requests come whether or not the last was answered. That
is what the open loop measures: each latency counts from the moment at which the request was meant to
start, so a stall of the server is charged to all requests that it held up (no coordinated omission).
Their spacing is that of independent users (Poisson), unless it is asked to be even.
"""
