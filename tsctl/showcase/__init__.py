"""`tsctl demo`: batching measured, then failures under load, on one screen and a private daemon.

story         the scenes, in order; the daemon: a socket in a folder that only this user can enter, no TCP
measuring     the first: requests per second in ones and in batches
disturbing    then a worker is killed, the model replaced, the daemon upgraded
photograph    the last: one photograph, where the packages with a trained network are installed
load          the clients: the load generator, and what it has counted
facts         what has happened so far; nothing else is shown
screen        facts to lines: a pure function
drawing       lines to a terminal, or facts to a pipe
served        the model: its handler, weights and input; runs in a worker
"""
