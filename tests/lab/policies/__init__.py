"""The same queue, collectors, dispatcher and pool on a virtual clock, under random traffic.

A separate process: `python -m tests.lab.policies`. `world` is one model with stub workers, `cores` what these share.
"""
