"""The reader of one HTTP/1.1 answer, from bytes however they are cut: llhttp, and what it leaves to its user.

HEAD ──end of the headers──▶ BODY ──its last byte──▶ whole
  │                            └──end of the stream──▶ whole without a length and without chunks; else broken
  └──end of the stream──▶ broken
"""

from typing import Any

import httptools

from tsctl.python.errors import ConnectionLost, UnreadableAnswer

MOST_HEAD = 256 * 1024  # bytes


class AnswerReader:
    """Reads one answer; interim answers (100) before it are passed over.

    Attributes:
        status: 0 until the headers are complete.
        headers: by name in lower case; of repeated ones the last.
        whole: the answer is complete.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.whole = False
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._head = 0
        self._keep_alive = False
        self._excess = False

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent on the connection."""
        return self.whole and self._keep_alive and not self._excess

    def feed(self, data: bytes) -> bytes:
        """Read what has arrived; return what it holds of the body.

        Raises:
            UnreadableAnswer: the bytes are not HTTP, or the headers are too long.
        """
        if self.whole:
            self._excess = self._excess or bool(data)
            return b""
        if not self.status:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.whole:
                raise UnreadableAnswer(f"the answer is not HTTP: {error}") from None
            self._excess = True
        if not self.status and self._head > MOST_HEAD:
            raise UnreadableAnswer(f"the headers of the answer have more than {MOST_HEAD} bytes")
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def read_end(self) -> None:
        """Read the end of the stream.

        Raises:
            ConnectionLost: the answer is not complete.
        """
        if self.whole:
            return
        bounded = "content-length" in self.headers or "transfer-encoding" in self.headers
        if not self.status or bounded:
            raise ConnectionLost("the connection broke off before the answer was complete")
        self.whole = True

    # What llhttp calls.

    def on_message_begin(self) -> None:
        self._excess = self._excess or self.whole

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.whole and not self.status:  # otherwise of a trailer, or of what follows the answer
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.whole:
            return
        if 100 <= status < 200 and status != 101:
            self.headers.clear()
            return
        self.status = status
        self._keep_alive = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if not self.whole:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self.status:
            self.whole = True
