"""One model version on a virtual clock: the real queue, dispatcher and pool, stub workers."""
