"""The place of a request in a sequence, as TorchServe's three headers tell it; operators may rename them."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from tsctl.daemon.models.request_watcher import ParameterHeader


class SequenceHeaders(NamedTuple):
    """The names of the headers of sequences, as operators write them; they are compared without case."""

    id: str = "ts_request_sequence_id"
    start: str = "ts_request_sequence_start"
    end: str = "ts_request_sequence_end"

    def parameters(self) -> dict[str, ParameterHeader]:
        """Return the same as parameters of the Open Inference Protocol (Triton's sequence extension)."""
        return {
            "sequence_id": ParameterHeader(self.id, False),
            "sequence_start": ParameterHeader(self.start, True),
            "sequence_end": ParameterHeader(self.end, True),
        }


USUAL = SequenceHeaders()


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


def read_mark(headers: Headers, names: SequenceHeaders = USUAL) -> SequenceMark:
    """Return the place in a sequence that the headers tell; of those with equal names, the last counts."""
    id_, start, end = (name.lower() for name in names)
    found = {lower: value.strip() for name, value in headers if (lower := name.lower()) in (id_, start, end)}
    name = found.get(id_, "")
    if not name:
        return SequenceMark(f"ts-seq-{uuid.uuid4()}", True, _is_true(found, end), True)
    return SequenceMark(name, _is_true(found, start), _is_true(found, end), False)


def with_mark(headers: Headers, mark: SequenceMark, names: SequenceHeaders = USUAL) -> Headers:
    """Return headers in which a handler finds a new id; others unchanged."""
    if not mark.made:
        return headers
    kept = [each for each in headers if each[0].lower() not in (names.id.lower(), names.start.lower())]
    return [*kept, (names.id, mark.id), (names.start, "true")]


def with_new_id(headers: Headers, mark: SequenceMark, names: SequenceHeaders = USUAL) -> Headers:
    """Return an answer's headers, with the id if the client does not know it; the handler's own header wins."""
    if not mark.made or any(name.lower() == names.id.lower() for name, _ in headers):
        return headers
    return [*headers, (names.id, mark.id)]


def ended_by(headers: Headers, names: SequenceHeaders = USUAL) -> list[str]:
    """Return the sequences that an answer's headers end; several are separated by semicolons."""
    told = [value for key, value in headers if key.lower() == names.end.lower()]
    return [name for value in told for each in value.split(";") if (name := each.strip())]


def _is_true(found: dict[str, str], name: str) -> bool:
    return found.get(name, "").lower() == "true"
