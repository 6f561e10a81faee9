"""Requests of OpenAI's API, and the row that a handler finds in its `data` for one.

Each member of the request is a part of the row, as JSON: `messages`, `max_tokens`, `temperature`. The text itself is
the part `data`, where TorchServe's text handlers look for it: the prompt, or the messages as a transcript, for models
without a template of their own.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from tsctl.daemon.core.arena import Gathered, Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param
from tsctl.daemon.core.steps import Steps, finish
from tsctl.daemon.extensions.json_text.syntax import WINDOW
from tsctl.daemon.extensions.json_text.walk import Found, JsonText, read_members
from tsctl.daemon.extensions.openai.texts import gather_text

COMPLETIONS, CHAT = "v1/completions", "v1/chat/completions"
_JSON, _TEXT = "application/json", "text/plain"
T = TypeVar("T")
MOST_MEMBERS = 64  # of a request, a message or a part; the API has about thirty
MOST_MESSAGES = 4096  # of a chat; as many parts of one message
_MESSAGES = "a list of messages, each with a `role` and a `content`"
_DECODED_WHOLE = 1024  # bytes of a value that is decoded without another look


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


# Members of the API without which an answer of a text is still the answer: how it is sampled, and who asks.
_HINTS = frozenset({
    "model", "prompt", "messages", "data", "stream", "stream_options", "n", "best_of", "temperature", "top_p", "seed",
    "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "stop", "logit_bias", "user",
    "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls",
    "reasoning_effort", "verbosity",
})  # fmt: skip
# Those that ask for another answer than a text, and the values that do not.
_ONLY: dict[str, tuple[object, ...]] = {
    "echo": (False,), "suffix": ("",), "logprobs": (False, 0), "top_logprobs": (0,), "tools": ([],),
    "tool_choice": ("none", "auto"), "functions": ([],), "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},), "modalities": (["text"],), "audio": (), "prediction": (),
    "web_search_options": (),
}  # fmt: skip
_SHORT_VALUE = 100  # bytes


def check_members(params: Sequence[Param], inputs: Collection[str]) -> None:
    """Check that a request asks a handler with type hints, which sees its own inputs alone, for nothing but a text.

    Args:
        params: the row.
        inputs: the names of the handler's.

    Raises:
        BadRequest: a member asks for more, or is none of the API's.
    """
    for name, kind, value in params:
        if name in inputs or name in _HINTS or kind != _JSON:
            continue
        if name not in _ONLY:
            takes = ", ".join(inputs)
            raise BadRequest(f"`{name[:_SHORT_VALUE]}` is no member of the API, nor an input of the handler: {takes}.")
        written = bytes(value[:_SHORT_VALUE] if isinstance(value, bytes) else value.view[:_SHORT_VALUE])
        if written != b"null" and (len(value) >= _SHORT_VALUE or _read(written) not in _ONLY[name]):
            shown = written.decode("utf-8", "replace")
            raise BadRequest(f"`{name}` is {shown}, which this model does not serve: it answers with a text alone.")


def _read(written: bytes) -> object:
    try:
        return msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a number beyond any float
        return None


class _Message(msgspec.Struct):
    """A message of a chat: its text, or its parts, of which those of text count."""

    role: str
    content: str | list["_Part"] | None = None


class _Part(msgspec.Struct):
    type: str
    text: str = ""


Members = dict[str, msgspec.Raw]
_messages = msgspec.json.Decoder(list[_Message])
_message = msgspec.json.Decoder(_Message)
_part = msgspec.json.Decoder(_Part)
_prompt: "msgspec.json.Decoder[str | list[str]]" = msgspec.json.Decoder(str | list[str])
_name = msgspec.json.Decoder(str)
_switch = msgspec.json.Decoder(bool | None)
_count = msgspec.json.Decoder(int | None)


def is_long(body: Payload) -> bool:
    """Return whether reading a request could hold the event loop for long."""
    return len(body) > WINDOW


def read_request(body: Payload, *, chat: bool) -> Asked:
    """Read a request all at once; as `read_steps`."""
    return finish(read_steps(body, chat=chat))


def read_steps(body: Payload, *, chat: bool) -> Steps[Asked]:
    """Read a request in steps; a short one is read in one.

    Args:
        chat: it is one for the next message of a chat, and has `messages`; else for what follows a `prompt`.

    Raises:
        BadRequest: the body is no JSON, or a member is missing, invalid or not supported, or there are too many.
    """
    members, places = yield from read_members(body, MOST_MEMBERS, WINDOW)
    if len(members) > MOST_MEMBERS:
        raise BadRequest(f"The request has {len(members)} members; at most {MOST_MEMBERS} are allowed.")
    name, _, version = _member(members, "model", _name, "a model's name").partition("/")
    for count in ("n", "best_of"):
        wanted = _member(members, count, _count, "a number", None)
        if wanted not in (None, 1):
            raise BadRequest(f"`{count}` is {wanted}; expected 1.")
    stream = bool(_member(members, "stream", _switch, "true or false", None))
    text = Gathered(body.beside if isinstance(body, Lease) else None, len(body))
    yield from _gather_transcript(members, text) if chat else _gather_prompt(members, text)
    params = [
        Param(name, _JSON, _value_of(body, places[name]) if name in places else bytes(value))
        for name, value in members.items()
        if name != "data"
    ]
    params.append(Param("data", _TEXT, text.payload()))
    return Asked(name, version or None, stream, params)


def _value_of(body: Payload, of: Found) -> Payload:
    """Return a member's bytes, in the arena if the body is there: no frame has to copy them."""
    return body[of.start : of.end] if isinstance(body, bytes) else body.part(of.start, of.end)


def _gather_transcript(members: Members, into: Gathered) -> Steps[None]:
    """Add the messages as lines `ROLE: TEXT`, and the beginning of the answer's."""
    written = JsonText(_written(members, "messages", _MESSAGES))
    size = len(written.data)
    if size <= WINDOW:
        for message in _member(members, "messages", _messages, _MESSAGES):
            into.add_piece(_line(message.role, _text_of(message)))
    else:
        for each in (yield from written.elements(Found("", 0, size), MOST_MESSAGES, "messages")):
            yield from _gather_line(written, each, into)
    if not into.size:
        raise BadRequest("`messages` is empty.")
    into.add_piece(b"assistant:")


def _line(role: str, content: bytes) -> bytes:
    return b"%b: %b\n" % (_utf8(role), content)


def _text_of(message: _Message) -> bytes:
    content = message.content
    if isinstance(content, list):
        return _utf8("".join([part.text for part in content if part.type == "text"]))
    return _utf8(content or "")


def _gather_line(text: JsonText, of: Found, into: Gathered) -> Steps[None]:
    """Add the line of a message among many, or of a long one."""
    if of.size <= _DECODED_WHOLE:
        message = _decoded(text.part(of), _message, "messages", _MESSAGES)
        into.add_piece(_line(message.role, _text_of(message)))
        return
    members = yield from _members_of(text, of, "a message")
    into.add_piece(_utf8(_member(members, "role", _name, "a role")) + b": ")
    content = memoryview(members.get("content", b"null"))
    if bytes(content[:1]) == b"[":
        parts = JsonText(content)
        for each in (yield from parts.elements(Found("", 0, len(content)), MOST_MESSAGES, "parts of a message")):
            yield from _gather_part(parts, each, into)
    elif bytes(content[:5]) != b"null":
        yield from gather_text(content, into)
    into.add_piece(b"\n")


def _gather_part(text: JsonText, of: Found, into: Gathered) -> Steps[None]:
    """Add a part of a message's content, if it is a text."""
    if of.size <= _DECODED_WHOLE:
        part = _decoded(text.part(of), _part, "messages", _MESSAGES)
        into.add_piece(_utf8(part.text) if part.type == "text" else b"")
        return
    members = yield from _members_of(text, of, "a part of a message")
    if _member(members, "type", _name, "a part's type") == "text" and "text" in members:
        yield from gather_text(memoryview(members["text"]), into)


def _members_of(text: JsonText, of: Found, what: str) -> Steps[Members]:
    found = yield from text.members(of, MOST_MEMBERS, what)
    return {each.name: msgspec.Raw(text.data[each.start : each.end]) for each in found}


def _gather_prompt(members: Members, into: Gathered) -> Steps[None]:
    """Add the prompt, alone or the only one of a list."""
    value = _written(members, "prompt", "a text")
    if len(value) > WINDOW:
        text = JsonText(value)
        if bytes(value[:1]) == b"[":
            found = yield from text.elements(Found("", 0, len(value)), MOST_MEMBERS, "texts in `prompt`")
            if len(found) != 1:
                raise _several(len(found))
            value = value[found[0].start : found[0].end]
        yield from gather_text(value, into)
        return
    prompt = _member(members, "prompt", _prompt, "a text")
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if len(prompts) != 1:
        raise _several(len(prompts))
    into.add_piece(_utf8(prompts[0]))


def _several(count: int) -> BadRequest:
    return BadRequest(f"`prompt` has {count} texts; expected one: send each in a request of its own.")


def _member(members: Members, name: str, decoder: "msgspec.json.Decoder[T]", expected: str, *default: T) -> T:
    if default and name not in members:
        return default[0]
    value = _written(members, name, expected)
    if len(value) > WINDOW:
        raise BadRequest(f"`{name}` has {len(value)} bytes; expected {expected}.")
    return _decoded(value, decoder, name, expected)


def _written(members: Members, name: str, expected: str) -> memoryview:
    value = members.get(name)
    if value is None:
        raise BadRequest(f"`{name}` is missing; expected {expected}.")
    return memoryview(value)


def _decoded(value: bytes | memoryview, decoder: "msgspec.json.Decoder[T]", name: str, expected: str) -> T:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"`{name}` is invalid: {error}; expected {expected}.") from None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
