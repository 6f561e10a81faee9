"""Texts of a model in the words of OpenAI's API: an answer's document, its chunks, and an error."""

import codecs
import json
import time
from typing import Any

DONE = b"data: [DONE]\n\n"
STOP = "stop"
Usage = dict[str, int] | None


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

    def whole(self, text: bytes, reason: str = STOP, usage: Usage = None, logprobs: Any = None) -> dict[str, Any]:
        """Return the document of a whole answer.

        Args:
            reason: why the text ends here, `stop` or `length`.
            usage: how many tokens the request and the answer have; None if that is not known.
            logprobs: of the tokens, in the API's form.
        """
        said = text.decode("utf-8", "replace")
        if self._chat:
            choice: dict[str, Any] = {"message": {"role": "assistant", "content": said}}
        else:
            choice = {"text": said, "logprobs": logprobs}
        return self._document("chat.completion" if self._chat else "text_completion", choice, reason, usage)

    def chunk(self, piece: bytes, logprobs: Any = None) -> bytes:
        """Return the events of a piece; a character that it is cut in comes with the next one."""
        return self._begin() + self._text(self._decoder.decode(piece), logprobs)

    def last_events(self, piece: bytes, reason: str = STOP, usage: Usage = None) -> bytes:
        """Return the events of the last piece, and those that end the answer; arguments as of `whole`."""
        text = self._text(self._decoder.decode(piece, True))
        events = self._begin() + text + self._chunk({"delta": {}} if self._chat else _nothing(), reason)
        if usage is not None:
            events += event_of({**self._head, "object": self._kind, "choices": [], "usage": usage})
        return events + DONE

    def _begin(self) -> bytes:
        if self._begun or not self._chat:
            return b""
        self._begun = True
        return self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def _text(self, text: str, logprobs: Any = None) -> bytes:
        if not text:
            return b""
        return self._chunk({"delta": {"content": text}} if self._chat else {"text": text, "logprobs": logprobs}, None)

    @property
    def _kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _chunk(self, choice: dict[str, Any], reason: str | None) -> bytes:
        return event_of(self._document(self._kind, choice, reason))

    def _document(self, kind: str, choice: dict[str, Any], reason: str | None, usage: Usage = None) -> dict[str, Any]:
        document = {**self._head, "object": kind, "choices": [{"index": 0, **choice, "finish_reason": reason}]}
        return document if usage is None else {**document, "usage": usage}


def _nothing() -> dict[str, Any]:
    return {"text": "", "logprobs": None}


def usage_of(prompt: int, answer: int) -> dict[str, int]:
    """Return the API's count of tokens."""
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def event_of(document: dict[str, Any]) -> bytes:
    """Return a document as a server-sent event."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"
