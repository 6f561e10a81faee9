"""Random commands of several clients, a daemon that is killed at random, and whether what it serves then can be so.

commands.py   the commands, and what each makes of what is registered
checker.py    whether a history explains what was found
clients.py    random commands to a real daemon
__main__.py   runs: clients, `kill -9`, restart, look, check
"""
