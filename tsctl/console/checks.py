"""The checks of a request for the page: pure functions of its headers, and the one-time token.

A request is answered if its `Host` is ours (no other name that resolves to 127.0.0.1), its `Origin` is ours or absent,
the browser does not call it cross-site, and it has the cookie. A token becomes that cookie once.
"""

import hmac
import secrets
import threading
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

CHANGING = ("POST", "PATCH")


def refusal(method: str, headers: Mapping[str, str], port: int, *, entering: bool = False) -> str:
    """Return why a request is refused whatever its cookie; empty if it is not.

    Args:
        headers: by names in small letters.
        port: the port of the page.
        entering: whether the request comes from the redirect file, which is another site for a browser.
    """
    host = headers.get("host", "")
    if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return "the Host header does not name this page"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "the Origin header names another site"
    if origin is None and method in CHANGING:
        return "the Origin header is missing"
    if not entering and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "the request comes from another site"
    return ""


class BrowserSession:
    """The token of the redirect file, and the cookie that one browser gets for it.

    Attributes:
        token: the one-time token, 256 random bits.
        name: the cookie's name; with the port, since browsers send cookies to all ports of a host.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.name = f"tsctl_console_{port}"
        self._cookie = secrets.token_urlsafe(32)
        self._used = False
        self._lock = threading.Lock()

    def claim(self, token: str) -> str:
        """Return the header `Set-Cookie` for the token, the first time; empty for another token and later."""
        with self._lock:
            if self._used or not hmac.compare_digest(token.encode(), self.token.encode()):
                return ""
            self._used = True
        return f"{self.name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, cookies: str) -> bool:
        """Return whether a `Cookie` header has the cookie."""
        try:
            found = SimpleCookie(cookies).get(self.name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())
