"""The daemon under faults: its production objects on a virtual event loop.

Registration, registry, pools, dispatchers and the worker protocol are real; worker processes, clients, operators, the
disk and the faults are drawn from a seed. A seed determines a run, as in FoundationDB's and TigerBeetle's simulators:
the same seed, the same story.

    plan        what a seed draws: models, traffic, faults
    loop        an event loop and a clock in virtual time; it can stall
    streams     answers in pieces, and clients that do not read them
    process     worker processes that exist only here: how they are born, talk and end; script: what they do
    engine      production's LocalWorker over such a process, and what is seen of it
    world       registration and models; clients ask them, operators and the machine change them
    ledger      the world's own book: each request and what became of it
    suspicion   the same of requests that end workers
    invariants  what holds whenever the loop is at rest; endings: when all is over
    story       what happened, for people
    run         one seed

A separate process: `python -m daemon.simulate.faults`. There are many runs, so each is short: a few milliseconds.
"""
