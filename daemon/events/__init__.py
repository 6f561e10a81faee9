"""Events: the facts that an operator must not miss, kept in memory and on disk, and told to whoever asks.

Each event is one line of the daemon's log as well. The kinds are one table (`KINDS`); a fact that may repeat a
thousand times a second is told once a minute with its count (recurring.py).
"""
