"""The checks of a request for the page: pure functions of its headers, and the secret of the page's tabs.

A request is answered if its `Host` is the page's own (no other name that resolves to this machine), its `Origin` is
the page's or absent, and the browser does not call it cross-site. A request for the daemon needs the secret, too, in
the header `Authorization`. The page gets the secret for a token, and keeps it in `sessionStorage`, which belongs to one
origin: address and port. A cookie would not do: browsers send it to every port of an address, so every user of this
machine who serves a page on 127.0.0.1 could receive the cookie.

With TLS any `Host` will do: a browser shows no page whose certificate is for another name.
"""

import hmac
import secrets
import threading
from collections.abc import Callable, Mapping

CHANGING = ("POST", "PATCH")
_SCHEME = "bearer "


def refusal(method: str, headers: Mapping[str, str], own: str, *, opening: bool = False, secure: bool = False) -> str:
    """Return why a request is refused whatever its secret; empty for a good one.

    Args:
        headers: by names in small letters.
        own: address and port of the page, as in its URL.
        opening: whether the page itself is asked for, to which the redirect file leads, another site for a browser.
        secure: whether the request came over TLS.
    """
    host = headers.get("host", "")
    # No `localhost`, which may lead to an address of another family, where another user listens: one origin for both.
    if not secure and host != own:
        return "the Host header does not name this page"
    origin = headers.get("origin")
    if origin is not None and origin != f"http{'s' * secure}://{host}":
        return "the Origin header names another site"
    if origin is None and method in CHANGING:
        return "the Origin header is missing"
    if not opening and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "the request comes from another site"
    return ""


def body_length(text: str, most: int) -> int | None:
    """Return the length that a header `Content-Length` names, `most + 1` for any that is larger; None for no number.

    `text` is foreign: `int` raises for more than 4300 digits, and takes digits that are not ASCII.
    """
    if not text.isascii() or not text.isdigit():
        return None
    digits = text.lstrip("0") or "0"
    return min(int(digits), most + 1) if len(digits) <= len(str(most)) else most + 1


class BrowserSession:
    """The token that opens the page, and the secret that a tab gets in return.

    Args:
        given: the operator's token, which works each time; empty for tokens of our own, which work once.
        secure: whether the page is served over TLS.

    Attributes:
        token: the operator's, or 256 random bits.
        lasting: the token works each time.
        renewed: called with the next token when one of our own was used.
    """

    def __init__(self, given: str = "", *, secure: bool = False) -> None:
        self.token = given or secrets.token_urlsafe(32)
        self.lasting = bool(given)
        self.secure = secure
        self.renewed: Callable[[str], object] = lambda _: None
        self._secret = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    def claim(self, token: str) -> str:
        """Return the secret for the token; empty for any other text, and for a token of our own that was used."""
        with self._lock:
            if not hmac.compare_digest(token.encode(), self.token.encode()):
                return ""
            if not self.lasting:
                self.token = secrets.token_urlsafe(32)
                self.renewed(self.token)
        return self._secret

    def knows(self, authorization: str) -> bool:
        """Return whether a header `Authorization` has the secret."""
        given = authorization[len(_SCHEME) :] if authorization[: len(_SCHEME)].lower() == _SCHEME else ""
        return hmac.compare_digest(given.encode(), self._secret.encode())
