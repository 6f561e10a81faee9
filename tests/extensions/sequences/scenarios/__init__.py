"""A version with sequences, for scenarios: `a1` is a request of the sequence `a`."""

from typing import Any

from tests.extensions.sequences.stateful import Stateful
from tsctl.daemon.core.client import ShareHolder
from tsctl.daemon.core.job import Job


class Scenario(Stateful):
    def submit(self, name: str, body: bytes = b"", *, start: bool = False, client: str = "", **further: Any) -> Job:
        headers = [("ts_request_sequence_id", name[0]), *[("ts_request_sequence_start", "true")] * start]
        return super().submit(name, body, headers=headers, client=ShareHolder(client, known=False), **further)


bench = Scenario
