"""`tsctl.serve`: one model in a daemon of one's own, for tests and notebooks.

    serve         the call, and the model that it returns; its daemon is a tsctl.private_daemon
    handler_file  a function or class of this process → a folder that the daemon's workers load

Nothing of a user's code runs in the daemon. A pickle is read by workers only, from a folder that only this user can
enter; no request can bring one.
"""
