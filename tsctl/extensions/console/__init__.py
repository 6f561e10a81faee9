"""`tsctl console`: a page in the browser for the daemon behind one control socket.

    browser ──HTTP, loopback──▶ page.py ──▶ places.py   connections, and which of them makes room
                                   ├──▶ checks.py       who may ask: host, origin, the secret of the page's tabs
                                   ├──▶ static/         the page: plain modules, no build, and for everybody
                                   └──▶ request_filter.py ──▶ the control socket (tsctl/client.py)

The way in: the redirect file leads to the page with a token in the fragment (entrance.py); the page's session.js sends
the token once, keeps the secret that comes back in sessionStorage, and sends it with every request.

The process belongs to the terminal that started it. The daemon has no part in this and no listener more: the
console is an extension of the command line alone.
"""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class ConsoleCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {"console": ("Daemon", "Show the daemon and its models in the browser.")}
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "console": (
            ("Open the page in the browser", "tsctl console"),
            ("Print the file to open, for port 8765", "tsctl console --port 8765 --no-browser"),
        )
    }


COMMAND_LINE = ConsoleCommandLine()
