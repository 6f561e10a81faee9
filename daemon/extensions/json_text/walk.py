"""Find the members of objects and the elements of lists in large JSON, without building anything.

msgspec looks at a list's `max_length` when the list has been built: 8 MiB of numbers take 50 ms, of objects seconds and
a gigabyte. So large JSON is walked first: windows of it are searched in C for the end of each value, the values are
counted, and only short ones are decoded. Nothing is said of a value's syntax but where it ends (syntax.py checks that).
"""

import re
from typing import Final, NamedTuple

import msgspec

from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.json_text.syntax import OTHERS, STRING, WHOLE, WINDOW, check_syntax, no_json

MOST_SPACE: Final = 16 * 1024  # bytes of white space in one place
_MOST_NAME: Final = 8192  # bytes of a member's name, as written
_MOST_NUMBER: Final = 4096  # characters
_FIRST: Final = 4 * 1024  # bytes whose brackets are counted one by one
_EACH: Final = 128  # bytes that are walked in the time that a value takes beside them
_DEPTH: Final = 64  # levels of lists that are taken out of a window together
_SPACE = re.compile(rb"[ \t\r\n]*+")
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]++")
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_QUOTE, _COLON, _COMMA, _OPEN, _CLOSE, _LIST, _LIST_END = b'":,{}[]'


class Found(NamedTuple):
    """A value in the text; `name` is empty for an element of a list."""

    name: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class JsonText:
    """The text of a document, and how much of it was walked since the last step.

    Args:
        data: the text; a view of memory that stays.

    Attributes:
        end: of the object whose members were returned last.
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.end = 0
        self._work = 0

    def part(self, found: Found) -> bytes:
        return bytes(self.data[found.start : found.end])

    def document(self, most: int, what: str) -> Steps[list[Found]]:
        """Return the members of the one object that is all of the text; raise BadRequest if it is none."""
        start = self.space(0)
        self._byte(start)  # there is one
        found = yield from self.members(Found("", start, len(self.data)), most, what)
        if self.space(self.end) < len(self.data):
            raise no_json(f"something follows its end at byte {self.end}")
        return found

    def members(self, of: Found, most: int, what: str) -> Steps[list[Found]]:
        """Return the members of an object; of members with the same name the last.

        Args:
            most: members that are accepted.
            what: the object, for a sentence: "the request".

        Raises:
            BadRequest: it is no object, or has more members; at the first too many the rest is not read.
        """
        at, data = of.start, self.data
        if data[at] != _OPEN:
            raise BadRequest(f"The body has something else where {what} should be an object.")
        found: dict[str, Found] = {}
        count = 0
        at = self.space(at + 1)
        while self._byte(at) != _CLOSE or count:
            count += 1
            if count > most:
                raise BadRequest(f"There are more than {most} members in {what}; at most {most} are read.")
            written = STRING.match(data, at, at + _MOST_NAME)
            if written is None:
                raise no_json(f"{what} has no name of a member at byte {at}, or a longer one than {_MOST_NAME} bytes")
            at = self.space(written.end())
            if self._byte(at) != _COLON:
                raise no_json(f"a colon is missing at byte {at}")
            start = self.space(at + 1)
            end = yield from self.value(start)
            name = name_of(written.group())
            if name in found:  # nobody else will look at it
                yield from check_syntax(data[found[name].start : found[name].end])
            found[name] = Found(name, start, end)
            at = self.space(end)
            if self._byte(at) == _CLOSE:
                break
            if self._byte(at) != _COMMA:
                raise no_json(f"a comma is missing at byte {at}")
            at = self.space(at + 1)
        self.end = at + 1
        return list(found.values())

    def elements(self, of: Found, most: int, what: str) -> Steps[list[Found]]:
        """Return the elements of a list.

        Args:
            most: elements that are accepted.
            what: they are, for a sentence: "inputs".

        Raises:
            BadRequest: it is no list, or has more elements; at the first too many the rest is not read.
        """
        at, found = of.start, list[Found]()
        if self.data[at] != _LIST:
            raise BadRequest(f"The body has something else where a list of {what} should be.")
        at = self.space(at + 1)
        while self._byte(at) != _LIST_END or found:
            if len(found) >= most:
                raise BadRequest(f"The body has more than {most} {what}; at most {most} are read.")
            end = yield from self.value(at)
            found.append(Found("", at, end))
            at = self.space(end)
            if self._byte(at) == _LIST_END:
                break
            if self._byte(at) != _COMMA:
                raise no_json(f"a comma is missing at byte {at}")
            at = self.space(at + 1)
        return found

    def value(self, at: int) -> Steps[int]:
        """Return where the value that begins at `at` ends. Raise BadRequest if none begins there, or it has no end."""
        self._work += _EACH
        if self._work >= 2 * WINDOW:
            self._work = 0
            yield
        first = self._byte(at)
        if first == _QUOTE:
            short = STRING.match(self.data, at, at + WINDOW)
            if short is None:
                return (yield from self.string(at))
            self._work += short.end() - at
            return short.end()
        if first in (_LIST, _OPEN):
            return (yield from self._nested(at))
        found = _SCALAR.match(self.data, at, at + _MOST_NUMBER + 1)
        if found is None:
            raise no_json(f"no value begins at byte {at}")
        if found.end() - at > _MOST_NUMBER:
            raise no_json(f"a number at byte {at} has more than {_MOST_NUMBER} characters")
        return found.end()

    def string(self, at: int) -> Steps[int]:
        at += 1
        while True:
            found = _IN_STRING.match(self.data, at, at + WINDOW)
            assert found is not None
            if found.end() < len(self.data) and self.data[found.end()] == _QUOTE:
                return found.end() + 1
            if found.end() == at:
                raise no_json("a string has no end")
            at = found.end()
            yield

    def space(self, at: int) -> int:
        """Return where white space ends. Raise BadRequest if there is very much of it."""
        if at >= len(self.data) or self.data[at] > 32:
            return at
        found = _SPACE.match(self.data, at, at + MOST_SPACE + 1)
        assert found is not None
        if found.end() - at > MOST_SPACE:
            raise no_json(f"there are more than {MOST_SPACE} bytes of white space at byte {at}")
        return found.end()

    def _byte(self, at: int) -> int:
        if at >= len(self.data):
            raise no_json("the text ends within a value")
        return self.data[at]

    def _nested(self, at: int) -> Steps[int]:
        """Return where an object or a list ends, whatever kinds of brackets are in it."""
        depth, first = 0, True
        while at < len(self.data):
            stop = min(at + (_FIRST if first else WINDOW), len(self.data))
            if not first:  # most end in the first window; of later ones it is cheaper to know that they cannot
                stop, ends, begins = self._window(at, stop)
                if stop == at:
                    at = yield from self.string(at)
                    continue
                if ends < depth:
                    depth += begins - ends
                    self._work = 0
                    at = stop
                    yield
                    continue
                stop = min(stop, at + _FIRST)
            for each in _BRACKET.finditer(self.data, at, stop):
                sign = self.data[each.start()]
                if sign in (_LIST, _OPEN):
                    depth += 1
                elif sign != _QUOTE:
                    depth -= 1
                    if not depth:
                        self._work += each.end() - at
                        return each.end()
                elif each.end() == each.start() + 1:  # a string that does not end here
                    stop = each.start()
                    break
            if stop == at:
                stop = yield from self.string(at)
            at, first = stop, False
            self._work = 0
            yield
        raise no_json("a list or an object has no end")

    def _window(self, at: int, stop: int) -> tuple[int, int, int]:
        """Return where a window ends outside a string, at most at `stop`, and as `levels` of what is in it."""
        window = bytes(self.data[at:stop])
        if b'"' not in window:
            return (stop, *levels(window))
        whole = WHOLE.match(window)
        assert whole is not None
        return (at + whole.end(), *levels(STRING.sub(b"", whole.group())))


def read_members(body: Payload, most: int, at_once: int) -> Steps[tuple[dict[str, msgspec.Raw], dict[str, Found]]]:
    """Return, in steps, the members of a request, and where they are in a long one.

    Args:
        most: members of a long request that are accepted.
        at_once: bytes of a request that is decoded in one step; longer ones are walked.

    Raises:
        BadRequest: the request is no object in JSON, or a long one has more members.
    """
    view = body.view if isinstance(body, Lease) else memoryview(body)
    if len(view) <= at_once:
        try:
            return _members.decode(view), {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"The request is no JSON object: {error}.") from None
    places: dict[str, Found] = {}
    for each in (yield from JsonText(view).document(most, "the request")):
        yield from check_syntax(view[each.start : each.end])
        places[each.name] = each
    return {name: msgspec.Raw(view[each.start : each.end]) for name, each in places.items()}, places


def levels(text: bytes) -> tuple[int, int]:
    """Return how many lists and objects end in a text that began before it, and begin in it that do not end in it.

    Where they are nested deeper than `_DEPTH`, the first number may be too large.
    """
    brackets = text.translate(_BRACKETS, OTHERS)
    for _ in range(_DEPTH):
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    ends = brackets.count(b"]")
    return ends, len(brackets) - ends


def name_of(written: bytes) -> str:
    """Return the text of a short string in JSON. Raise BadRequest if it is none."""
    try:
        return msgspec.json.decode(written, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise no_json(str(error)) from None
