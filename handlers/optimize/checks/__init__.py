"""The check of optimisations: the models with and without give the same answers.

samples.py    inputs for both
drift.py      how far the outputs are apart
agreement.py  how often both choose the same class; variants.py makes more inputs for that
archive.py    the archive, and
processor.py  the processor for which that is true
outcomes.py   the outcomes, kept for the next load of the same archive on the same machine
"""
