"""Wrap an entry point in the envelope that the setting `service_envelope` names."""

import importlib
from typing import Any

from tsctl.handlers.envelopes.envelope import Envelope, Opened
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint

# Name → (module, class), imported on use.
ENVELOPES = {
    "body": ("tsctl.handlers.envelopes.json", "BodyEnvelope"),
    "json": ("tsctl.handlers.envelopes.json", "JSONEnvelope"),
    "kserve": ("tsctl.handlers.envelopes.json", "KServeEnvelope"),
    "kservev2": ("tsctl.handlers.envelopes.kservev2", "KServev2Envelope"),
}


class EnvelopedEntryPoint(EntryPoint):
    """An entry point whose requests come in an envelope."""

    def __init__(self, entry: EntryPoint, envelope: Envelope) -> None:
        super().__init__(entry.instance, envelope.handle)
        self._entry = entry
        self._envelope = envelope
        self.checks = True
        self.notes = entry.notes

    def initialize(self, context: Context) -> None:
        """Load the model, without the envelope."""
        self._entry.initialize(context)

    def close(self) -> None:
        """End what the entry point within runs between batches."""
        self._entry.close()

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Open every request; return those that are unreadable as a whole or in one of their rows."""
        unreadable: dict[int, UnreadablePayload] = {}
        for index, row in enumerate(data):
            try:
                data[index] = self._envelope.open(row)
            except UnreadablePayload as error:
                unreadable[index] = error
        owners = [(index, place) for index, row in enumerate(data) if isinstance(row, Opened)
                  for place in range(len(row.rows))]  # fmt: skip
        rows = [data[index].rows[place] for index, place in owners]
        for number, why in self._entry.prepare(rows).items() if self._entry.checks else ():
            unreadable.setdefault(owners[number][0], why)
        for (index, place), row in zip(owners, rows, strict=True):
            data[index].rows[place] = row
        return unreadable


def enveloped(entry: EntryPoint, name: str) -> EntryPoint:
    """Wrap an entry point; an empty name or `default` returns it unchanged.

    Raises:
        HandlerError: there is no envelope of this name.
    """
    if name in ("", "default"):
        return entry
    if name not in ENVELOPES:
        raise HandlerError(f"`{name}` is not a service envelope; use {', '.join(ENVELOPES)}")
    module, attribute = ENVELOPES[name]
    envelope: Envelope = getattr(importlib.import_module(module), attribute)(entry.handle)
    return EnvelopedEntryPoint(entry, envelope)
