"""The library for Python programs: clients of a daemon, and a private daemon for tests and notebooks.

    client, async_client      Client, AsyncClient: what users call
    calls                     a request to be sent, whichever client sends it; and whether it is sent again
    inputs, answers           Python values → bodies, answers → Python values or errors
    link, async_link          one keep-alive connection; reader reads the answers of the latter
    serving/                  serve(): a daemon that lives as long as its program

`import tsctl` has the public names. `tsctl/client.py` is the command line's own.
"""
