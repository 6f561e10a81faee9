"""Requests of OpenAI's API, and the row that a handler finds in its `data` for one.

Each member of the request is a part of the row, as JSON: `messages`, `max_tokens`, `temperature`. The text itself is
the part `data`, where TorchServe's text handlers look for it: the prompt, or the messages as a transcript, for models
without a template of their own.
"""

from typing import NamedTuple, TypeVar

import msgspec

from daemon.core.arena import Payload
from daemon.core.errors import BadRequest
from daemon.core.job import Param

COMPLETIONS, CHAT = "v1/completions", "v1/chat/completions"
_JSON, _TEXT = "application/json", "text/plain"
T = TypeVar("T")
_MOST_MEMBERS = 64  # the API has about thirty


class Asked(NamedTuple):
    """A request.

    Attributes:
        model, version: the member `model`, `NAME` or `NAME/VERSION`.
        stream: the answer is to come in pieces.
        params: the row.
    """

    model: str
    version: str | None
    stream: bool
    params: list[Param]


class _Message(msgspec.Struct):
    """A message of a chat: its text, or its parts, of which those of text count."""

    role: str
    content: str | list["_Part"] | None = None


class _Part(msgspec.Struct):
    """A part of a message's content."""

    type: str
    text: str = ""


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_messages = msgspec.json.Decoder(list[_Message])
_prompt: "msgspec.json.Decoder[str | list[str]]" = msgspec.json.Decoder(str | list[str])
_name = msgspec.json.Decoder(str)
_switch = msgspec.json.Decoder(bool | None)
_count = msgspec.json.Decoder(int | None)


def read_request(body: Payload, *, chat: bool) -> Asked:
    """Read a request.

    Args:
        chat: it is one for the next message of a chat, and has `messages`; else for what follows a `prompt`.

    Raises:
        BadRequest: the body is no JSON, or a member is missing, invalid or not supported.
    """
    try:
        members = _members.decode(body if isinstance(body, bytes) else body.view)
    except msgspec.DecodeError as error:
        raise BadRequest(f"The request is no JSON object: {error}.") from None
    if len(members) > _MOST_MEMBERS:
        raise BadRequest(f"The request has {len(members)} members; at most {_MOST_MEMBERS} are allowed.")
    name, _, version = _member(members, "model", _name, "a model's name").partition("/")
    for count in ("n", "best_of"):
        wanted = _member(members, count, _count, "a number", None)
        if wanted not in (None, 1):
            raise BadRequest(f"`{count}` is {wanted}; expected 1.")
    text = transcript_of(members) if chat else _prompt_of(members)
    params = [Param(name, _JSON, bytes(value)) for name, value in members.items() if name != "data"]
    params.append(Param("data", _TEXT, text.encode("utf-8", "surrogatepass")))
    return Asked(name, version or None, bool(_member(members, "stream", _switch, "true or false", None)), params)


def transcript_of(members: dict[str, msgspec.Raw]) -> str:
    """Return the messages as lines `ROLE: TEXT`, and the beginning of the answer's."""
    messages = _member(members, "messages", _messages, "a list of messages, each with a `role` and a `content`")
    if not messages:
        raise BadRequest("`messages` is empty.")
    lines = [f"{message.role}: {_text_of(message)}\n" for message in messages]
    return "".join(lines) + "assistant:"


def _text_of(message: _Message) -> str:
    content = message.content
    if isinstance(content, list):
        return "".join(part.text for part in content if part.type == "text")
    return content or ""


def _prompt_of(members: dict[str, msgspec.Raw]) -> str:
    prompt = _member(members, "prompt", _prompt, "a text")
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise BadRequest(f"`prompt` has {len(prompt)} texts; expected one: send each in a request of its own.")
    return prompt[0]


def _member(
    members: dict[str, msgspec.Raw], name: str, decoder: "msgspec.json.Decoder[T]", expected: str, *default: T
) -> T:
    value = members.get(name)
    if value is None:
        if default:
            return default[0]
        raise BadRequest(f"`{name}` is missing; expected {expected}.")
    try:
        return decoder.decode(value)
    except msgspec.DecodeError as error:
        raise BadRequest(f"`{name}` is invalid: {error}; expected {expected}.") from None
