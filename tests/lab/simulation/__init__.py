"""The daemon under faults: its production objects on a virtual event loop.

Registration, registry, pools, dispatchers and the worker protocol are real; worker processes, clients, operators, the
disk and the faults are drawn from a seed. A seed determines a run, as in FoundationDB's and TigerBeetle's simulators:
the same seed, the same story.

    plan        drawn from a seed: models, the modes in which they run requests, traffic, faults
    loop        an event loop and a clock in virtual time, with stalls
    process     simulated worker processes: start, messages and end; script: their behaviour, with whole batches;
                rows: with rows that run on their own
    engine      production's LocalWorker over such a process, and its checks
    clients     send requests, and read what comes, or do not; operators: they and the machine change the daemon
    world       registration and models, and the story: the events, for people
    ledger      the world's own record: each request and its outcome; sequences: the same for sequences
    invariants  checks whenever the loop is at rest, and at the end
    __main__    one seed, and many

There are many runs, so each is short: a few milliseconds.
"""
