"""The redirect file: the way from the terminal to the browser that no other user can see.

An argument of a process is readable by all users (`ps`), so the browser gets the name of a file of mode 0600 in a
directory of mode 0700, and finds a token there that works once. The token is in the fragment of the page's URL, which
no request carries. When a token was used the file is written again with the next one, so the file opens the page for
its user each time: in another browser, and after the last tab was closed.
"""

import contextlib
import html
import os
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path

from tsctl.extensions.console.checks import BrowserSession


class Entrance:
    """The file, as long as the page is served.

    Args:
        url: the page's.

    Attributes:
        file: HTML that leads the browser to the page.
    """

    def __init__(self, url: str, session: BrowserSession) -> None:
        self.file = Path(tempfile.mkdtemp(prefix="tsctl-console-")) / "open.html"
        self._url = url
        self._write(session.token)
        session.renewed = self._renew

    def _renew(self, token: str) -> None:
        with contextlib.suppress(OSError):  # the tab that asks gets in; the page says how to go on without the file
            self._write(token)

    def _write(self, token: str) -> None:
        target = html.escape(f"{self._url}/#enter={token}")
        text = (
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={target}"><title>tsctl console</title>\n'
        )
        draft = self.file.with_suffix(".draft")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        draft.replace(self.file)

    def open(self) -> bool:
        """Open the file in the user's browser; return whether there is one that has a window."""
        if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return False
        return webbrowser.open(self.file.as_uri())

    def close(self) -> None:
        """Remove the file; removing it again has no effect."""
        shutil.rmtree(self.file.parent, ignore_errors=True)
