"""A version with a cache of answers, for scenarios."""

from typing import Any

from tests.extensions.cache.test_answers import Cached, submit
from tsctl.daemon.core.job import Job, TimeBudget


class Scenario(Cached):
    def submit(self, name: str, body: bytes = b"a", *, limit: str = "", **further: Any) -> Job:
        """Let a request come, and be answered from the cache if it can be; `limit` is the setting of its 30 s."""
        if limit:
            further["budget"] = TimeBudget(30.0, self.clock.now(), limit)
        job = self.client.job(name, body or b"a", **further)
        submit(self, job)
        return job

    @property
    def told(self) -> str:
        hits, shared, misses = self.counted
        return (
            f"cache: {hits} hits, {shared} shared, {misses} misses, {len(self.cache)} kept in {self.cache.bytes} bytes"
        )


bench = Scenario
