"""The answers of protocols whose models make texts: whole, in JSON, or piece by piece, as server-sent events."""

import json
from typing import Any, Final

from tsctl.daemon.core.errors import PredictionFailed
from tsctl.daemon.core.job import Flow, Piece, Reply, error_reply
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response, reply_response

MOST_TEXT: Final = 16 * 1024 * 1024  # bytes of the pieces that are joined to one answer
_EVENTS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))


class TextAnswer:
    """The receiver of a job's replies, whole or in pieces, for a client that wants the one or the other.

    Args:
        stream: the client wants pieces, as events.

    Attributes:
        how_to_stream: the words for a client whose answer is too long to be joined.
    """

    how_to_stream = ""

    def __init__(self, exchange: Exchange, *, stream: bool) -> None:
        self._exchange = exchange
        self._stream = stream
        self._begun = False  # a piece has come
        self._pieces: list[bytes] = []
        self._size = 0

    def _end(self, reply: Reply) -> None:
        """Answer with a whole text, or with the last piece of one."""
        raise NotImplementedError

    def _piece(self, piece: Reply) -> bytes:
        """Return a piece as an event, or for the whole answer; raise ValueError if it is no answer of the protocol."""
        raise NotImplementedError

    def _error(self, reply: Reply) -> bytes:
        raise NotImplementedError

    def deliver(self, reply: Reply) -> None:
        if self._exchange.done:
            return  # a piece was an error
        if reply.error or reply.status >= 300:
            self._fail(reply)
            return
        try:
            self._end(reply)
        except ValueError as error:
            self._fail(error_reply(PredictionFailed(str(error))))

    def stream(self, piece: Reply) -> None:
        """Pass on a piece, or keep it for the whole answer."""
        exchange, flow = self._exchange, None
        if isinstance(piece, Piece):
            if piece.unread:
                exchange.fail(NotRead(piece.unread))
                return
            flow = piece.flow
        if not exchange.done:
            try:
                if piece.error or piece.status >= 300:  # the handler reports an error
                    self._fail(piece)
                else:
                    self._take(self._piece(piece), len(piece.body), flow)
            except ValueError as error:
                self._fail(error_reply(PredictionFailed(str(error))))
            if not exchange.done:
                return
        if flow is not None:
            flow.refuse()

    def _take(self, data: bytes, size: int, flow: Flow | None) -> None:
        exchange = self._exchange
        self._begun = True
        if self._stream:
            self._start()
            exchange.send(data, flow)
            return
        self._pieces.append(data)
        self._size += size
        if self._size > MOST_TEXT:
            exchange.fail(PredictionFailed(f"The answer has more than {MOST_TEXT} bytes; {self.how_to_stream}."))
        elif flow is not None:
            flow.wanted = True
            flow.drained()

    def _start(self) -> None:
        if not self._exchange.started:
            self._exchange.start(Response(200, headers=_EVENTS))

    def _fail(self, reply: Reply) -> None:
        exchange = self._exchange
        if exchange.started:
            exchange.send(self._error(reply))
            exchange.finish()
        else:
            exchange.respond(reply_response(reply, exchange.request.target))


def text_of(reply: Reply) -> bytes:
    """Return the text of a whole answer: the body, or the text that is its JSON."""
    document = document_of(reply)
    return document.encode("utf-8", "surrogatepass") if isinstance(document, str) else reply.body


def document_of(reply: Reply) -> Any:
    """Return the document of an answer in JSON; None for any other."""
    kinds = [value for name, value in reply.headers if name.lower() == "content-type"]
    if not kinds or kinds[0].partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
