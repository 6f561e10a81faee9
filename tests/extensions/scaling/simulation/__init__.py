"""The rule for the number of workers, simulated: a version on a virtual clock, its autoscaler, traffic that changes.

traffic      arrivals whose rate changes: steps, ramps, bursts, a day; clients that wait for their answers
run          one run: with the rule, or with a fixed number of workers
table        all runs, side by side
"""
