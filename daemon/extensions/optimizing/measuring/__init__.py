"""Sets of optimisations in throw-away workers, in turns: for `tsctl optimize`, and for the trials of the daemon.

A program of its own: an order on stdin, JSON lines on stdout (__main__.py).

    candidates     the sets to try
    turns          each set in turns with that of now: full batches, and the worker's own report
    harness        the throw-away worker, and the batches that it runs
"""
