"""The course of one version: its work in each of the last 90 steps of ten seconds.

Samples are differences of counts that exist anyway, so requests pay nothing. A version costs 3 kB.
"""

import math
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tsctl.daemon.api.management.commands import FOUND, Parameters, word_routes
from tsctl.daemon.api.openapi import STRING, answer, operation, query_parameters
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.extension import Service
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.metrics.histogram import FINE, Counts, quantile
from tsctl.daemon.models.registry import Registry

EVERY = 10.0  # seconds
KEPT = 90  # samples: 15 minutes


class CourseSample(NamedTuple):
    """The work of a version until a moment, since the sample before.

    Attributes:
        time: the moment, seconds since the epoch.
        rate, errors: answers, and requests that count against the version, a second.
        p50, p99: milliseconds; nan if a worker answered no request that counts.
        queued: requests that waited at the moment.
    """

    time: float
    rate: float
    errors: float
    p50: float
    p99: float
    queued: float


class Course:
    """The samples of one version, the oldest first."""

    def __init__(self) -> None:
        self._columns = [array("d"), *(array("f") for _ in CourseSample._fields[1:])]
        self._before: Counts | None = None
        self._since = 0.0
        self._era: object = None

    def __len__(self) -> int:
        return len(self._columns[0])

    def note(self, counts: Counts, era: object, queued: int, now: float, time: float) -> None:
        """Add a sample of the time since the last call.

        Args:
            counts: of the version, now.
            era: another object than before if counts were added that are not of this time, as after an upgrade.
            now: on the daemon's clock.
            time: the same moment, in seconds since the epoch.
        """
        before, seconds = self._before, now - self._since
        if before is not None and era is self._era and counts.requests >= before.requests:
            self._add(_sample(before, counts, queued, seconds, time))
        self._before, self._since, self._era = counts, now, era

    def rows(self) -> list[CourseSample]:
        """Return the samples."""
        return [CourseSample(*row) for row in zip(*self._columns, strict=True)]

    def recall(self, rows: Sequence[CourseSample]) -> None:
        """Begin with the samples of an earlier run."""
        for row in rows:
            self._add(row)

    def document(self) -> dict[str, Any]:
        """Return the samples by their fields; null for latencies where there are none."""
        time, rate, errors, p50, p99, queued = (list(column) for column in self._columns)
        return {
            "time": [round(each, 1) for each in time],
            "requestsPerSecond": [round(each, 2) for each in rate],
            "errorsPerSecond": [round(each, 2) for each in errors],
            "p50Ms": [_or_none(each) for each in p50],
            "p99Ms": [_or_none(each) for each in p99],
            "queued": [round(each) for each in queued],
        }

    def _add(self, sample: CourseSample) -> None:
        for column, value in zip(self._columns, sample, strict=True):
            column.append(value)
            if len(column) > KEPT:
                column.pop(0)


def _sample(before: Counts, counts: Counts, queued: int, seconds: float, time: float) -> CourseSample:
    if counts == before:
        return CourseSample(time, 0.0, 0.0, math.nan, math.nan, queued)
    latencies = [new - old for new, old in zip(counts.latencies, before.latencies, strict=True)]
    p50, p99 = (quantile(FINE, latencies, q) for q in (0.5, 0.99))
    rate, errors = counts.requests - before.requests, counts.errors - before.errors
    return CourseSample(time, rate / seconds, max(0, errors) / seconds, _or_nan(p50), _or_nan(p99), queued)


def _or_nan(seconds: float | None) -> float:
    return math.nan if seconds is None else seconds * 1000


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)


OPERATIONS = {
    "/tsctl/history": {
        "get": operation(
            "history", query_parameters({"model": STRING}),
            {"200": answer("The last 15 minutes of all models, or of one.", {"type": "object"})}, FOUND,
        )
    }
}  # fmt: skip
_Key = tuple[str, str]
_Kept = dict[str, dict[str, list[list[float | None]]]]  # name → version → rows; None for no latency


class HistoryService(Service):
    """The courses of all versions as a service of the daemon.

    `GET /tsctl/history[?model=MODEL[/VERSION]]`, on the control socket:

        every     seconds between two samples
        models    of each version, or of those named:

            name, version
            time                                  of each sample, seconds since the epoch, the oldest first
            requestsPerSecond, errorsPerSecond    since the sample before
            p50Ms, p99Ms                          null where no worker has answered
            queued                                requests that waited
    """

    measures = True

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._courses: dict[_Key, Course] = {}
        self._ticker = Ticker(clock, EVERY, self._take_samples)

    def begin(self) -> None:
        self._ticker.begin()

    def close(self) -> None:
        self._ticker.close()

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return word_routes({"history": self._answer}) if audience is Audience.OPERATORS else {}

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        """Return all samples for the daemon that takes over; nothing else needs them."""
        if not last:
            return None
        kept: dict[str, dict[str, Any]] = {}
        for (name, version), course in self._courses.items():
            kept.setdefault(name, {})[version] = course.rows()  # whose nan becomes null
        return kept or None

    def restore(self, kept: Any) -> None:
        try:
            read = msgspec.convert(kept, _Kept)
            rows = {
                (name, version): [
                    CourseSample(*(math.nan if value is None else value for value in row)) for row in rows
                ]
                for name, versions in read.items()
                for version, rows in versions.items()
            }
        except (msgspec.ValidationError, TypeError) as error:
            raise ValueError(str(error)) from None
        oldest = time.time() - EVERY * KEPT
        for key, samples in rows.items():
            self._courses.setdefault(key, Course()).recall([sample for sample in samples if sample.time > oldest])

    def _take_samples(self) -> None:
        now, moment = self._clock.now(), time.time()
        courses: dict[_Key, Course] = {}
        for model in self._registry:
            key, metrics = (model.name, model.version), model.metrics
            courses[key] = self._course_of(*key)
            courses[key].note(metrics.counts, metrics.window, model.waiting, now, moment)
        self._courses = courses

    def _answer(self, exchange: Exchange) -> None:
        name, slash, version = (Parameters(exchange.request).text("model") or "").partition("/")
        models = [self._registry.find(name, version if slash else None)] if name else list(self._registry)
        documents = [
            {"name": each.name, "version": each.version, **self._course_of(each.name, each.version).document()}
            for each in models
        ]
        exchange.respond(Response(200, json_bytes({"every": EVERY, "models": documents}), (JSON,)))

    def _course_of(self, name: str, version: str) -> Course:
        return self._courses.get((name, version), Course())
