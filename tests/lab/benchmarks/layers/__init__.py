"""Each layer of the daemon alone, on the fakes that ship: no network, no other process but where one is measured.

    http      parse a request, answer it, write the access line       budget 9 µs of CPU a request
    queue     job, queue, collector, dispatcher, metrics              budget 6 µs
    frames    encode and decode, at both ends                         budget 5 µs
    worker    the loop in the worker process, over a socketpair       budget 12 µs
    daemon    http and queue together, routed: what a request costs the daemon, less its system calls

`python -m tests.lab.benchmarks.layers` prints all of them, and `python -m tests.lab.benchmarks.layers.NAME`
one. The budget is for 32 connections and batches of eight. Times are processor time, the least of some
runs, so that neighbours on the machine matter little.
"""
