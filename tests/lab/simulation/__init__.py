"""The daemon under faults: its production objects on a virtual event loop.

Registration, registry, pools, dispatchers and the worker protocol are real; worker processes, clients, operators, the
disk and the faults are drawn from a seed. A seed determines a run, as in FoundationDB's and TigerBeetle's simulators:
the same seed, the same story.

    plan        drawn from a seed: models, traffic, faults
    loop        an event loop and a clock in virtual time, with stalls
    streams     streamed responses, and clients that do not read them
    modes       how each version runs requests: whole batches, rows that come and go, sequences, groups of processes
    process     simulated worker processes: start, messages and end; script: their behaviour, with whole batches;
                rows: with rows that run on their own
    engine      production's LocalWorker over such a process, and its checks
    world       registration and models; clients send requests, operators and the machine change them
    ledger      the world's own record: each request and its outcome
    suspicion   the same for requests that end workers; sequences: for sequences
    invariants  checks whenever the loop is at rest; endings: checks at the end
    story       the events, for people
    run         one seed

A separate process: `python -m tests.lab.simulation`. There are many runs, so each is short: a few milliseconds.
"""
