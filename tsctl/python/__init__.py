"""The library for Python programs: clients of a daemon, and a private daemon for tests and notebooks.

    client, async_client      Client, AsyncClient: what users call
    session                   what both do: connections that are kept, calls that are sent until they are answered
    calls                     a request to be sent, whichever client sends it; and whether it is sent again
    inputs, answers           Python values → bodies, answers → Python values or errors
    transport/                one keep-alive connection, over a socket that blocks or asyncio's streams
    serving/                  serve(): a daemon that lives as long as its program

`import tsctl` has the public names. `tsctl/client.py` is the command line's own.
"""
