"""A version with sequences."""

from functools import partial
from typing import Any

from tests.kit.version import StubVersion
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.sequences.marks import USUAL
from tsctl.daemon.extensions.sequences.service import open_sequences, sequences_of
from tsctl.daemon.extensions.sequences.table import Sequences
from tsctl.daemon.workers.engine import Worker


class Stateful(StubVersion):
    """A version with sequences; `send("a1", "b1")` sends a request of the sequence `a`, and one of `b`."""

    def __init__(self, **settings: Any) -> None:
        asked = {"sequences": True, "batch_size": 4, "max_sequences": 8, "sequence_jobs": 8, "workers": 1} | settings
        workers, names = asked.pop("workers"), asked.pop("sequence_headers", USUAL)
        super().__init__(workers=0, **asked)
        self.model.tell_services = partial(open_sequences, self.model, names)
        self.model.tell_services()
        if workers:
            self.model.scale(workers, workers)
            self.clock.settle()

    @property
    def sequences(self) -> Sequences[Worker]:
        found = sequences_of(self.model)
        assert found is not None
        return found

    def send(self, *names: str, **further: Any) -> list[Job]:
        return [self.one(name, settle=False, **further) for name in names] + self._settled()

    def one(self, name: str, *, settle: bool = True, start: bool = False, end: bool = False, **further: Any) -> Job:
        headers = [("ts_request_sequence_id", name[0])]
        headers += [("ts_request_sequence_start", "true")] * start + [("ts_request_sequence_end", "true")] * end
        job = self.submit(name, headers=headers, **further)
        if settle:
            self.clock.settle()
        return job

    def _settled(self) -> list[Job]:
        self.clock.settle()
        return []
