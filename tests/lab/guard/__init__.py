"""The guard of a request's cost: the daemon's processor time for a constant answer, beside the last release's.

make guard, or python -m tests.lab.guard [--baseline COMMIT] [--pairs 9]

baseline.py     which commit is compared with: the last release, or the one in baseline.txt while there is none
wheels.py       a compiled wheel of either, each in an environment of its own
measure.py      both daemons in turns
verdict.py      from the ratios to the verdict
"""
