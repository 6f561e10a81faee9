"""A version whose workers end with some requests, and what is hashed of them."""

from typing import Any

import pytest

from daemon.batching import quarantine
from daemon.batching.fingerprint import fingerprint
from daemon.batching.quarantine import AT_ONCE
from daemon.core.job import Job
from daemon.workers.slot import SlotState
from daemon.workers.stub import StubWorker
from tests.kit.version import StubVersion

SMALL, LARGE = b"poison", b"poison" * AT_ONCE


class PoisonedVersion(StubVersion):
    """A greedy version whose workers end with bodies that begin with `poison`, when they are told to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"policy": "greedy"} | options)

    def ask(self, name: str, body: bytes = SMALL, **further: Any) -> Job:
        return super().ask(name, body, **further)

    @property
    def worker(self) -> StubWorker:
        return self.workers[-1]

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


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that is hashed."""
    sizes: list[int] = []

    def counted(params: Any, headers: Any) -> bytes:
        sizes.append(sum(len(param.value) for param in params))
        return fingerprint(params, headers)

    monkeypatch.setattr(quarantine, "fingerprint", counted)
    return sizes
