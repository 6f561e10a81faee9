"""`tsctl doctor`: what on this machine would break serving, or slow it down, each with its remedy.

    facts       the values that the checks judge, and nothing else
    machine     reads the facts about processors, memory, GPUs, limits and clocks
    places      reads the facts about the configuration, addresses, directories and the running daemon
    checks      what a check answers, and all of them in the order in which they are shown

A check is a pure function of facts.
"""
