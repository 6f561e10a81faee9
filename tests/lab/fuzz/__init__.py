"""Fuzzing what reads bytes that others wrote: `make fuzz` for a while, and every example again in `make test`.

    targets/       for each reader its examples, and a function that raises where a claim about it is broken
    campaign.py    one target under libFuzzer (atheris), which looks for bytes that run new code
    compiled.py    the same inputs, and mutations of them, on sources and on a wheel's compiled modules, side by side
    crashes/       bytes that once broke a claim: TARGET/what-was-wrong; test_targets.py tries them again
    damage.py      examples, damaged by chance: the short form of a campaign

A claim is more than "it does not crash": what is read is the same however the bytes are cut, what is
written is read back, two readers of one format agree, and an error is the one that the docstring names.
"""
