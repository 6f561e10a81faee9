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

import math
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from tsctl.daemon.api.management.parameters import Parameters
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.errors import MethodNotAllowed, ResourceNotFound
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.extension import Audience, Service
from tsctl.daemon.extensions.history.course import EVERY, KEPT, Course, CourseSample
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry

_Key = tuple[str, str]
_Kept = dict[str, dict[str, list[list[float | None]]]]  # name → version → rows; None for no latency


class HistoryService(Service):
    measures = True

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._courses: dict[_Key, Course] = {}
        self._ticker = Ticker(clock, EVERY, self._look)

    def begin(self) -> None:
        self._ticker.begin()

    def close(self) -> None:
        self._ticker.close()

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {"tsctl": self._route} if audience is Audience.OPERATORS else {}

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        """Return all samples for the daemon that takes over; nothing else needs them."""
        if not last:
            return None
        kept: dict[str, dict[str, Any]] = {}
        for (name, version), course in self._courses.items():
            rows = [[None if math.isnan(value) else value for value in row] for row in course.rows()]
            kept.setdefault(name, {})[version] = rows
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

    def _look(self) -> None:
        now, moment = self._clock.now(), time.time()
        courses: dict[_Key, Course] = {}
        for model in self._registry:
            key, metrics = (model.name, model.version), model.metrics
            courses[key] = self._course_of(*key)
            courses[key].note(metrics.counts, metrics.window, model.waiting, now, moment)
        self._courses = courses

    def _route(self, exchange: Exchange, path: list[str]) -> None:
        if path != ["history"]:
            raise ResourceNotFound
        if exchange.request.method != "GET":
            raise MethodNotAllowed
        name, slash, version = (Parameters(exchange.request).text("model") or "").partition("/")
        models = [self._registry.find(name, version if slash else None)] if name else list(self._registry)
        documents = [
            {"name": each.name, "version": each.version, **self._course_of(each.name, each.version).document()}
            for each in models
        ]
        exchange.respond(Response(200, json_bytes({"every": EVERY, "models": documents}), (JSON,)))

    def _course_of(self, name: str, version: str) -> Course:
        return self._courses.get((name, version), Course())
