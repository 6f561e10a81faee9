"""`tsctl console`: a page in the browser for the daemon behind one control socket.

    browser ──HTTP, loopback──▶ page.py ──▶ checks.py   who may ask: host, origin, cookie
                                   │
                                   ├──▶ static/         the page: plain modules, no build
                                   └──▶ allowed.py ──▶ the control socket (tsctl/client.py)

The process belongs to the terminal that started it. The daemon has no part in this and no listener more.
"""
