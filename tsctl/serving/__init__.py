"""`tsctl serve`: targets are registered, shown, followed and watched in the foreground.

requests.py   what the user named, checked before anything is started
place.py      the daemon that serves: one that runs, or one of our own, which ends with us
session.py    from the first registration to Ctrl-C
watching.py   which files are watched, and when a change is due
following.py  the models' logs, line by line
sample.py     the `curl` line and its sample request
screen.py     the texts
failures.py   a failure in at most five lines
"""
