"""The place of a request in a sequence, as TorchServe's three headers tell it."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

ID = "ts_request_sequence_id"
START = "ts_request_sequence_start"
END = "ts_request_sequence_end"
LONGEST = 1000  # characters of an id


class SequenceMark(NamedTuple):
    """A request's place in a sequence.

    Attributes:
        id: the client's, or a new one where the client sent none.
        start: the request begins the sequence anew.
        end: no further request follows.
        made: the id is new; the client has to be told.
    """

    id: str
    start: bool
    end: bool
    made: bool


Headers = Sequence[tuple[str, str]]


def read_mark(headers: Headers) -> SequenceMark:
    """Return what the headers say of the sequence; names are compared without case, of equal ones the last counts."""
    found = {lower: value.strip() for name, value in headers if (lower := name.lower()) in (ID, START, END)}
    name = found.get(ID, "")
    if not name:
        return SequenceMark(f"ts-seq-{uuid.uuid4()}", True, _is_true(found, END), True)
    return SequenceMark(name, _is_true(found, START), _is_true(found, END), False)


def with_mark(headers: Headers, mark: SequenceMark) -> Headers:
    """Return headers in which a handler finds a new id under TorchServe's names; others unchanged."""
    if not mark.made:
        return headers
    kept = [each for each in headers if each[0].lower() not in (ID, START)]
    return [*kept, (ID, mark.id), (START, "true")]


def with_new_id(headers: Headers, mark: SequenceMark) -> Headers:
    """Return an answer's headers, with the id if the client does not know it; the handler's own header wins."""
    if not mark.made or any(name.lower() == ID for name, _ in headers):
        return headers
    return [*headers, (ID, mark.id)]


def ended_by(headers: Headers) -> list[str]:
    """Return the sequences that an answer's headers end; several are separated by semicolons."""
    return [name for key, value in headers if key.lower() == END for each in value.split(";") if (name := each.strip())]


def _is_true(found: dict[str, str], name: str) -> bool:
    return found.get(name, "").lower() == "true"
