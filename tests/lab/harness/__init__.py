"""One randomised harness: whatever harms the daemon at random is a scenario of it.

`python -m tests.lab` lists them, and runs one by its name.

A scenario has two parts of its own: its clients and its harm. The rest is here, once:

    seed      a number from which everything is drawn; it is printed, and repeats a run
    clock     virtual (the same seed, the same run), or the machine's (what happens when is the machine's)
    ledger    who asked for what, how it ended, which processes were killed: the scenario's own record
    verdict   pure functions: may a request end so, may it have been run so often; what may not is a sentence
    story     what is told of a run: every step of a virtual one, counts and the daemon's log of a real one

    world                                       scenarios                                       driver
    the daemon's objects, simulated processes   simulation                                      seeds.py
    the daemon's connections, fake transports   lives                                           seeds.py
    a real daemon, real workers                 chaos, upgrades, history, ray                   storm.py

For real daemons:

    crowd     threads that ask or harm, each with a sequence of its own; a bug in one is told as broken
    peer      a connection, byte for byte
    protocol_clients   those of other protocols, from the folders of extensions
    clients   honest clients: each request is judged, and entered in the ledger
    daemon    the processes of a daemon, archives whose answers have an account
    footprint memory and descriptors when it is calm, and what is left in the end

A verdict that never finds anything proves nothing: `test_verdict.py` and the tests of each scenario plant what must be
found (planted: the rows of such a test).
"""
