"""Whether an optimisation is worth having: the models with and without are compared.

samples.py    inputs for both
drift.py      how far the outputs are apart
speed.py      how long a batch takes with the optimisation and without, measured in turns
archive.py    the archive, and
processor.py  the processor for which that is true
verdicts.py   the outcomes, kept for the next load of the same archive on the same machine
"""
