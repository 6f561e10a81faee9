"""The answers on one connection, as far as they have been written."""

from typing import NamedTuple


class Seen(NamedTuple):
    """One answer.

    Attributes:
        id: of its request.
        last: it announces that the connection is closed.
        complete: all of its bytes have been written.
    """

    id: str
    status: int
    last: bool
    complete: bool


class Garbled(Exception):
    """The bytes are no sequence of answers."""


def seen_answers(data: bytes) -> list[Seen]:
    """Read answers one after the other; each has a body, unless its status says that there is none.

    Raises:
        Garbled: the bytes are no sequence of answers.
    """
    found: list[Seen] = []
    at = 0
    while at < len(data):
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            raise Garbled(f"a head without an end: {data[at : at + 80]!r}")
        first, *lines = data[at:end].decode("latin-1").split("\r\n")
        at = end + 4
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1."):
            raise Garbled(f"no status line: {first!r}")
        status = int(rest[:3])
        if status == 100:
            continue
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        last = headers.get("connection") == "close"
        if "transfer-encoding" in headers:
            at, complete = _end_of_chunks(data, at)
        elif "content-length" in headers:
            at += int(headers["content-length"])
            complete = at <= len(data)
        else:
            complete = status == 204
            at = at if complete else len(data)
        found.append(Seen(headers["x-request-id"], status, last, complete))
    return found


def _end_of_chunks(data: bytes, at: int) -> tuple[int, bool]:
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return len(data), False
        size = int(data[at:end], 16)
        at = end + 2 + size + 2
        if at > len(data):
            return len(data), False
        if not size:
            return at, True
