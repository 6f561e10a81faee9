"""A version, its workers and its clients, on a clock that a line moves: text files that are compared whole.

`## the claim` begins one. In it, what happens:

    + version {"batch_size": 4}      settings, and arguments of StubVersion (tests/kit/version.py): the first line
    + version quarantine {}          with the extension whose tests have a `scenarios.bench`
    > a & b {"seconds": 0.5}         requests that come in one turn of the loop; `bytes`, `body`, and others of `submit`
    > a without a turn               and nothing happens yet
    + pass 1.5                       seconds
    + dies 0 {"retry": false}        a worker: `dies`, `crashes`, `hangs`; by its number among all that were started
    + congested 0, + reads 0         a worker does not read what it is sent, and does
    + leaves a                       the client of a request
    + scale 1 2, + up 2              the number of workers; `+ set {"max_delay": 1.0}`: settings
    + stop, + retry, + refuse all    what operators do; `+ drain 30`, `+ kill`: its workers
    + load takes 2                   or `works`, `fails WHY`, `failed once WHY`: of the workers that start from now on
    + batch takes 2                  or `its size`, in seconds
    + answer 503 {"body": "no"}      of the handler, or other fields of a `Reply`
    + learn 2                        batches of one come back, so that their time is known

The rest is written by `python -m tests.lab transcripts`: what is different since the line before.

    = worker 0: a b (full)           a batch, and why it was sent
    < a 503 after 1: …               an answer; of an error with its text
    = loading: STARTING UP           the state of the version, and of its workers' places
    ! worker-exited error of a: …    an event, and its requests
"""

import importlib
import json
from collections.abc import Sequence
from typing import Any

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.workers.engine import LoadFailure


def play(lines: list[str]) -> list[str]:
    """Let it happen again, and return the lines as they would have to be."""
    scenario, made = _Scenario(lines[0]), [lines[0]]
    for line in lines[1:]:
        if line[:2] in ("> ", "+ "):
            (scenario.ask if line[0] == ">" else scenario.happen)(line[2:])
            made += [line, *scenario.news()]
    return made


def _split(text: str) -> tuple[str, dict[str, Any]]:
    """Return the words of a line, and the JSON after them."""
    words, brace, rest = text.partition("{")
    return words.strip(), json.loads(brace + rest) if brace else {}


def _again(seconds: int | None) -> str:
    return "" if seconds is None else f" (again in {seconds} s)"


def _of(requests: Sequence[str]) -> str:
    return f" of {' '.join(requests)}" if requests else ""


class _Scenario:
    """A version, and what has been told of it."""

    def __init__(self, first: str) -> None:
        words, settings = _split(first)
        kind = words.removeprefix("+ version").strip()
        made = importlib.import_module(f"tests.extensions.{kind}.scenarios").bench if kind else StubVersion
        self.bench: StubVersion = made(**settings)
        self._jobs: dict[str, Job] = {}
        self._told: list[str] = []
        self._batches, self._replies, self._state, self._events, self._more = 0, 0, "", 0, ""
        self.news()

    def ask(self, text: str) -> None:
        text, later, _ = text.partition(" without a turn")
        for each in text.split(" & "):
            name, options = _split(each)
            if "bytes" in options:
                options["body"] = "-" * options.pop("bytes")
            options["body"] = options.get("body", "").encode()
            try:
                self._jobs[name] = self.bench.submit(name, **options)
            except DaemonError as error:
                self._told.append(f"< {name} is refused{_again(error.retry_after)}: {type(error).__name__}: {error}")
        if not later:
            self.bench.clock.settle()

    def happen(self, text: str) -> None:
        bench, (words, given) = self.bench, _split(text)
        verb, *rest = words.split(" ")
        numbers = [float(each) for each in rest if each.replace(".", "", 1).isdecimal()]
        match [verb, *rest[:1]]:
            case ["pass", _]:
                bench.clock.advance(numbers[0])
            case ["dies" | "crashes", _]:
                worker = bench.workers[int(numbers[0])]
                (worker.die if verb == "dies" else worker.crash)(**given)
            case ["hangs", _]:
                bench.workers[int(numbers[0])].hang(Reply(500, b"it is late"), **given)
            case ["congested" | "reads", _]:
                bench.workers[int(numbers[0])].congest(verb == "congested")
            case ["leaves", name]:
                bench.model.abandon(self._jobs[name])
            case ["scale", _]:
                bench.model.scale(int(numbers[0]), int(numbers[1]))
            case ["up", _]:
                bench.up(int(numbers[0]))
            case ["set"]:
                bench.model.change(bench.model.settings.changed(given, "set"))
            case ["stop"]:
                bench.model.stop()
            case ["retry"]:
                bench.model.retry()
            case ["refuse", _]:
                bench.model.refuse_waiting()
            case ["drain", _]:
                bench.model.pool.drain(numbers[0])
            case ["kill"]:
                bench.model.pool.kill()
            case ["load", "takes"]:
                bench.engine.load_time = numbers[0]
            case ["load", "works"]:
                bench.engine.load_failure = None
            case ["load", "failed"]:
                bench.engine.load_failure = LoadFailure(" ".join(rest[2:]), permanent=False)
            case ["load", _]:
                bench.engine.load_failure = LoadFailure(" ".join(rest[1:]))
            case ["answer", status]:
                headers = [(name, each) for name, each in given.pop("headers", [])]
                reply = Reply(int(status), given.pop("body").encode(), headers=headers, **given)
                bench.engine.answer = lambda job: reply
            case ["batch", _]:
                bench.engine.batch_time = (lambda size: numbers[0]) if numbers else float
            case ["learn", _]:
                for index in range(int(numbers[0])):
                    bench.ask(f"learning-{index}")
                    while not bench.model.idle:
                        bench.clock.step()
                self.news()
            case _:
                getattr(bench, verb)(*rest, **given)
        bench.clock.settle()

    def news(self) -> list[str]:
        """Return what nobody has been told yet."""
        bench, (told, self._told) = self.bench, (self._told, [])
        sent = sorted(
            (batch.id, number, batch) for number, worker in enumerate(bench.workers) for batch in worker.batches
        )
        for _, number, batch in sent[self._batches :]:
            told.append(f"= worker {number}: {' '.join(job.id for job in batch.jobs)} ({batch.reason})")
        self._batches = len(sent)
        for name, reply in bench.client.replies[self._replies :]:
            text = "".join(f"; {header}: {value}" for header, value in reply.headers)
            body = reply.body.decode() if reply.status != 200 or len(reply.body) < 60 else f"{len(reply.body)} bytes"
            text += f": {body}".replace("\n", "\\n") if body else ""
            told.append(f"< {name} {reply.status} after {bench.client.took[name]:.4g}{_again(reply.retry_after)}{text}")
        self._replies = len(bench.client.replies)
        before, self._more = self._more, str(getattr(bench, "told", ""))
        told += [f"= {self._more}"] * (before != self._more)
        states = " ".join(slot.state.name for slot in bench.model.pool.slots) or "no workers"
        if failure := bench.model.pool.failure:
            states += f", {failure.error}"
        before, self._state = self._state, f"= {bench.model.word}: {states}"
        told += [self._state] * (before != self._state)
        events = [each for each in bench.model.reports.latest() if each.sequence > self._events]
        told += [f"! {each.kind} {each.level}{_of(each.requests)}: {each.text}" for each in events]
        self._events = max([self._events, *(each.sequence for each in events)])
        return told
