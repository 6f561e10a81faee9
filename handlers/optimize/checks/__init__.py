"""The check of optimisations: the models with and without give the same answers.

samples.py    inputs for both, and more made of few
drift.py      how far the outputs are apart, and how often both choose the same class
archive.py    the archive, and
processor.py  the processor for which that is true
outcomes.py   the outcomes, kept for the next load of the same archive on the same machine
"""
