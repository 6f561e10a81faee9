"""The redirect file: the way from the terminal to the browser that no other user can see.

An argument of a process is readable by all users (`ps`), so the browser gets the name of a file of mode 0600 in a
directory of mode 0700, and finds the one-time token there.
"""

import html
import os
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path


class Entrance:
    """The file, as long as the page is served.

    Args:
        url: the page's.

    Attributes:
        file: HTML that leads the browser to the page.
    """

    def __init__(self, url: str, token: str) -> None:
        self.file = Path(tempfile.mkdtemp(prefix="tsctl-console-")) / "open.html"
        target = html.escape(f"{url}/enter?token={token}")
        text = (
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={target}"><title>tsctl console</title>\n'
        )
        with open(os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)

    def open(self) -> bool:
        """Open the file in the user's browser; return whether there is one that has a window."""
        if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return False
        return webbrowser.open(self.file.as_uri())

    def close(self) -> None:
        """Remove the file; removing it again has no effect."""
        shutil.rmtree(self.file.parent, ignore_errors=True)
