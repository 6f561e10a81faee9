"""`tsctl optimize`: load a model with one set of optimisations after the other, and measure each.

A program: an order on stdin, JSON lines on stdout (order.py).

    candidates     the sets to try
    jpeg           the size of a JPEG: small ones gain nothing from `scaled_decode`
    measuring      one throw-away worker a set, one after the other: full batches, and the worker's own report
    turns          the daemon's own trial (`optimize: auto`): each set in turns with that of now
    harness        the throw-away worker, and the batches that it runs
    verdict        the set to recommend, and whether the machine changed meanwhile
"""
