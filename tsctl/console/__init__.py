"""`tsctl console`: a page in the browser for the daemon behind one control socket.

    browser ──HTTP, loopback──▶ page.py ──▶ places.py   connections, and which of them makes room
                                   ├──▶ checks.py       who may ask: host, origin, the secret of the page's tabs
                                   ├──▶ static/         the page: plain modules, no build, and for everybody
                                   └──▶ allowed.py ──▶ the control socket (tsctl/client.py)

The way in: the redirect file leads to the page with a token in the fragment (entrance.py); the page's session.js sends
the token once, keeps the secret that comes back in sessionStorage, and sends it with every request.

The process belongs to the terminal that started it. The daemon has no part in this and no listener more.
"""
