"""Texts of a model in the words of OpenAI's API: an answer's document, its chunks, and an error."""

import codecs
import json
import time
from typing import Any

DONE = b"data: [DONE]\n\n"
STOP = "stop"


class Wording:
    """The documents of one answer.

    Args:
        id: the request's.
        model: as the client named it.
        chat: the answer is a message of a chat; else the text after a prompt.
    """

    def __init__(self, id: str, model: str, *, chat: bool) -> None:  # noqa: A002
        self._head = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{id}",
            "created": int(time.time()),
            "model": model,
        }
        self._chat = chat
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False

    def whole(self, text: bytes) -> dict[str, Any]:
        """Return the document of a whole answer."""
        said = text.decode("utf-8", "replace")
        if self._chat:
            return self._document("chat.completion", {"message": {"role": "assistant", "content": said}}, STOP)
        return self._document("text_completion", {"text": said, "logprobs": None}, STOP)

    def chunk(self, piece: bytes) -> bytes:
        """Return the events of a piece; a character that it is cut in comes with the next one."""
        return self._begin() + self._text(self._decoder.decode(piece))

    def end(self, piece: bytes) -> bytes:
        """Return the events of the last piece, and those that end the answer."""
        text = self._text(self._decoder.decode(piece, True))
        last = self._chunk({"delta": {}} if self._chat else {"text": "", "logprobs": None}, STOP)
        return self._begin() + text + last + DONE

    def _begin(self) -> bytes:
        if self._begun or not self._chat:
            return b""
        self._begun = True
        return self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        return self._chunk({"delta": {"content": text}} if self._chat else {"text": text, "logprobs": None}, None)

    def _chunk(self, choice: dict[str, Any], reason: str | None) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return event_of(self._document(kind, choice, reason))

    def _document(self, kind: str, choice: dict[str, Any], reason: str | None) -> dict[str, Any]:
        return {**self._head, "object": kind, "choices": [{"index": 0, **choice, "finish_reason": reason}]}


def event_of(document: dict[str, Any]) -> bytes:
    """Return a document as a server-sent event."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"
