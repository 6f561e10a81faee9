"""A version whose workers end with some requests, and what is hashed of them."""

from typing import Any

import pytest

from tests.kit.stub import StubWorker
from tests.kit.version import StubVersion
from tsctl.daemon.core.fingerprint import AT_ONCE, fingerprint
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.quarantine import quarantine
from tsctl.daemon.extensions.quarantine.dispatcher import QuarantineDispatcher
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine
from tsctl.daemon.extensions.quarantine.service import quarantine_of, watch_for_suspects
from tsctl.daemon.workers.slot import SlotState

SMALL, LARGE = b"poison", b"poison" * AT_ONCE


class QuarantinedVersion(StubVersion):
    """A version with a quarantine."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"dispatcher": QuarantineDispatcher} | options)
        watch_for_suspects(self.model)

    @property
    def quarantine(self) -> Quarantine:
        found = quarantine_of(self.model)
        assert found is not None
        return found


class PoisonedVersion(QuarantinedVersion):
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
