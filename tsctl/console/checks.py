"""The checks of a request for the page: pure functions of its headers, and the one-time token.

A request is answered if its `Host` is ours (no other name that resolves to 127.0.0.1), its `Origin` is ours or absent,
the browser does not call it cross-site, and it has the cookie. A token becomes that cookie once; the operator's, each
time. With TLS any `Host` will do: a browser shows no page whose certificate is for another name.
"""

import hmac
import secrets
import threading
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

CHANGING = ("POST", "PATCH")


def refusal(method: str, headers: Mapping[str, str], port: int, *, entering: bool = False, secure: bool = False) -> str:
    """Return why a request is refused whatever its cookie; empty if it is not.

    Args:
        headers: by names in small letters.
        port: the port of the page.
        entering: whether the request comes from the redirect file, which is another site for a browser.
        secure: whether it came over TLS.
    """
    host = headers.get("host", "")
    if not secure and host not in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        return "the Host header does not name this page"
    origin = headers.get("origin")
    if origin is not None and origin != f"http{'s' * secure}://{host}":
        return "the Origin header names another site"
    if origin is None and method in CHANGING:
        return "the Origin header is missing"
    if not entering and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "the request comes from another site"
    return ""


class BrowserSession:
    """The token that opens the page, and the cookie that a browser gets for it.

    Args:
        given: the operator's token, which works each time; empty for one of our own, which works once.
        secure: whether the page is served over TLS.

    Attributes:
        token: the operator's, or 256 random bits.
        lasting: the token works each time.
        name: the cookie's name; with the port, since browsers send cookies to all ports of a host.
    """

    def __init__(self, port: int, given: str = "", *, secure: bool = False) -> None:
        self.token = given or secrets.token_urlsafe(32)
        self.lasting = bool(given)
        self.secure = secure
        self.name = f"{'__Host-' * secure}tsctl_console_{port}"
        self._cookie = secrets.token_urlsafe(32)
        self._used = False
        self._lock = threading.Lock()

    def claim(self, token: str) -> str:
        """Return the header `Set-Cookie` for the token; empty for another one, and for ours after the first time."""
        with self._lock:
            if self._used or not hmac.compare_digest(token.encode(), self.token.encode()):
                return ""
            self._used = not self.lasting
        return f"{self.name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict{'; Secure' * self.secure}"

    def knows(self, cookies: str) -> bool:
        """Return whether a `Cookie` header has the cookie."""
        try:
            found = SimpleCookie(cookies).get(self.name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())
