"""The same queue, collectors, dispatcher and pool on a virtual clock, under traffic that is drawn at random.

A process of its own: `python -m daemon.simulate`.
"""
