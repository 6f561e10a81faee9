"""`optimize: auto`: the fastest set of optimisations is found by a trial while the version serves, and remembered.

    a version is built ──▶ building.py  may it be tried, and is a result remembered (record.py)
    each second        ──▶ trials.py    for each version: waits_for (due.py), one trial at a time
    the trial          ──▶ program.py   `tsctl.daemon.tools.optimize` with the lowest priority: sets.py, sample.py
    its result         ──▶ choice.py    the set to serve with; written down, and then
                           registrar    loads the version again beside itself, as the same version

state.py draws the trial of one version, which auto.py keeps.
"""
