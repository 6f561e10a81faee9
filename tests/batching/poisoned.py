"""A version whose workers end with some requests, and what is hashed of them."""

from collections.abc import Sequence
from typing import Any

import pytest

from daemon.batching import quarantine
from daemon.batching.fingerprint import fingerprint
from daemon.batching.quarantine import AT_ONCE
from daemon.core.job import Job, Reply
from daemon.workers.slot import SlotState
from daemon.workers.stub import StubWorker
from tests.batching.test_dispatcher import Bench as DispatcherBench

SMALL, LARGE = b"poison", b"poison" * AT_ONCE


class Bench(DispatcherBench):
    """A version whose workers end with bodies that begin with `poison`, when they are told to."""

    def ask(self, name: str, body: bytes = SMALL, headers: Sequence[tuple[str, str]] = (), **further: Any) -> Job:
        job = self.client.job(name, body, arrived=self.clock.now(), **further)
        job.headers = [("x-request-id", name), *headers]
        self.model.submit(job)
        self.clock.settle()
        return job

    @property
    def worker(self) -> StubWorker:
        return self.engine.workers[-1]

    def crash(self, retry: bool = False) -> None:
        """The youngest worker ends, and the next one is there."""
        self.worker.crash(retry=retry)
        (slot,) = self.model.pool.slots
        if slot.state is SlotState.BACKOFF:
            self.clock.advance(slot.retry_at - self.clock.now())
        self.clock.settle()

    def prove(self, body: bytes = SMALL) -> None:
        """Two workers end with a request alone."""
        for name in ("first", "second"):
            self.ask(name, body)
            self.crash()

    def told(self, name: str) -> Reply:
        return dict(self.client.replies)[name]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that is hashed."""
    sizes: list[int] = []

    def counted(params: Any, headers: Any) -> bytes:
        sizes.append(sum(len(param.value) for param in params))
        return fingerprint(params, headers)

    monkeypatch.setattr(quarantine, "fingerprint", counted)
    return sizes


def named(bench: Bench, name: str, body: bytes, **further: Any) -> Job:
    return bench.client.job(name, body, arrived=bench.clock.now(), **further)
