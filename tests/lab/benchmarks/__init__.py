"""Benchmarks: `make bench`, or `python -m tests.lab.benchmarks --help` for a part of it.

    peers/        the servers: each is installed, started and stopped in the same way
    workloads     what is done to a server: load on a constant answer and on real models, a kill
    measuring/    how it is measured: wrk, /proc
    results, page medians, and docs/benchmarks.md
    callbacks, bounds  `python -m tests.lab bounds`: what a body costs the event loop, idle connections, refusals
    models        what is served: archives, weights, bodies, and which answers are right

Servers take turns: every round runs every server once, so that what changes on the machine meanwhile
(its clock, its neighbours) falls on all of them. What counts is the median of the rounds, and what is
compared are ratios within one run.

The programs of figures that a comment or a page gives with "measured at COMMIT" are read with
`git show COMMIT:tests/lab/benchmarks/NAME.py`.
"""
