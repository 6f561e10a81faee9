"""The URLs that archives may come from, by the patterns that the operator allows."""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from tsctl.daemon.core.errors import ArchiveNotFound

MOST_URL = 8192  # characters
MOST_DECODINGS = 4  # of a URL's escapes; no honest URL is encoded more often


def check_url(url: str, allowed: Sequence[str]) -> None:
    """Refuse a URL that no pattern matches as a whole, case-insensitively.

    A server may decode the escapes once or more often: the raw URL has to match, and so does each decoding, until
    nothing changes.

    Raises:
        ArchiveNotFound: the URL does not match, is too long, is encoded too often, or holds `..`, a space, a backslash
            or an unprintable character, which servers may read differently.
    """
    if len(url) > MOST_URL:
        raise ArchiveNotFound(f"Given URL {url[:100]}… has {len(url)} characters, at most {MOST_URL} are read")
    forms = _decodings(url)
    if any(".." in re.split(r"[/\\]", form) for form in forms):
        raise ArchiveNotFound(f"Relative path is not allowed in url: {url}")
    if not _plain(url):
        raise ArchiveNotFound(f"Given URL {url} does not match any allowed URL(s)")
    for form in forms:
        if not any(re.fullmatch(pattern, form, re.IGNORECASE) for pattern in allowed):
            decoded = "" if form == url else f": it may be read as {form!r}"
            raise ArchiveNotFound(f"Given URL {url} does not match any allowed URL(s){decoded}")


def _decodings(url: str) -> list[str]:
    """Return the raw URL, and the URL after each decoding of its escapes, until nothing changes.

    Raises:
        ArchiveNotFound: the URL is encoded more than `MOST_DECODINGS` times.
    """
    forms = [url]
    while (decoded := unquote(forms[-1])) != forms[-1]:
        if len(forms) > MOST_DECODINGS:
            raise ArchiveNotFound(f"Given URL {url[:100]} is percent-encoded more than {MOST_DECODINGS} times")
        forms.append(decoded)
    return forms


def _plain(url: str) -> bool:
    """Return whether every parser reads the URL alike: urllib drops or repairs some characters."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return url.isprintable() and " " not in url and "\\" not in url
