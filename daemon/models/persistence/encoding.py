"""The content of the snapshot file: JSON, indented for human readers; a part that has not changed is encoded once.

Entries and earlier models are frozen, so each keeps its text as long as the snapshot has the same object. With 500
registered versions, of which one changes, a write encodes one entry and joins 500 texts.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.models.persistence.snapshot import OVERRIDES, EarlierModel, Snapshot, SnapshotEntry
from tsctl.daemon.models.settings import Overrides

_STEP = b"\n  "  # of the indentation


class SnapshotEncoder:
    """Encodes one snapshot after the other; keeps the texts of the last one."""

    def __init__(self) -> None:
        self._texts: dict[
            int, tuple[object, bytes]
        ] = {}  # by identity; the object is held, so that its id stays its own

    def encode(self, snapshot: Snapshot) -> bytes:
        """Return the file's content."""
        before, self._texts = self._texts, {}
        members = {
            b"version": b"%d" % snapshot.version,
            b"models": self._list(snapshot.models, before),
            b"earlier": self._list(snapshot.earlier, before),
            b"routes": _indented(_text(snapshot.routes), _STEP),
            b"extensions": _indented(_text(dict(sorted(snapshot.extensions.items()))), _STEP),
        }
        return b"{\n  " + b",\n  ".join([b'"%b": %b' % member for member in members.items()]) + b"\n}\n"

    def _list(self, parts: Iterable[SnapshotEntry | EarlierModel], before: dict[int, tuple[object, bytes]]) -> bytes:
        texts = []
        for part in parts:
            known = before.get(id(part)) or (part, _part_text(part))
            self._texts[id(part)] = known
            texts.append(known[1])
        return b"[\n    " + b",\n    ".join(texts) + b"\n  ]" if texts else b"[]"


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the file's content."""
    return SnapshotEncoder().encode(snapshot)


def _part_text(part: SnapshotEntry | EarlierModel) -> bytes:
    """Return the text of a member of a list, whose first line is indented already."""
    document = msgspec.to_builtins(part, enc_hook=_overrides)
    if isinstance(part, SnapshotEntry):
        document["request"] = {
            OVERRIDES if key == "overrides" else key: value for key, value in document["request"].items()
        }
    return _indented(_text(document), b"\n    ")


def _text(document: Any) -> bytes:
    return msgspec.json.format(json_bytes(document), indent=2)


def _indented(text: bytes, line: bytes) -> bytes:
    """Indent all lines but the first; a string of JSON has no line feed of its own."""
    return text.replace(b"\n", line)


def _overrides(overrides: Overrides) -> dict[str, Any]:
    return {**overrides.said, "since": overrides.since}
