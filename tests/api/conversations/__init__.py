"""Requests and the whole answers to them, in text files that are compared.

`## the claim` begins one, with a daemon of its own (tests/api/house.py). In it, what is arranged:

    + house {"own": false}                 arguments of the house; the first line, where it is there
    + put m {"config": "batchSize: 2"}     a model in the store, with `files` by their names;
                                           `+ archive m 1.0 {"in": "store"}`: as a file
    + serve m 1.0 {"workers": 2}           a version that is registered, with workers that are ready
    + handler {"inputs": [["a", "json"]]}  what the handler of the next workers takes; `+ handler base_handler`
    + load takes 100                       the loading of the next workers; or `works`, `fails WHY`, `has no memory`
    + batch takes 10                       the next batches, or `10 each`
    + pass 10                              seconds go by; `+ pass 10 by 1`: in steps, in which commands are carried out
    + ask 150 every 0.1 POST /predictions/m x   so many requests, of which nothing is told
    + capacity 1                           the batches that a worker may hold
    + header X-A: 1                        what all further requests have; `+ header X-A:`: no longer
    + begin POST /predictions/m cat        a request that nobody waits for, unless by `> the answer`
    + stream {"body": "Once"}              a piece of the answer to the latest request; `status`: another than 200
    + answer 503 {"body": "no"}            the answers of workers, or other fields of a `Reply`; those `of` a version
    + stop m, + end 0                      the end of a model, the death of a worker
    + event scaled five {"model": "m"}     what operators are told
    + only management                      the address: its routes alone, or those of `predictions`
    + started no, + gate closed            while the listed models are still registered; while no change is let in
    + expect m, + settle m WHY             a model is about to be registered; it is, or could not be
    + counted                              what is counted of each version
    + leave                                the client of the latest request that was begun

and what is asked. The rest is written by `python -m tests.lab transcripts`:

    > GET /models/m at 0.tsctl.state       a body may follow the path; or the parts of the answer to be shown
    > GET /metrics grep NAME               or an expression that begins the lines; `form a=1`: a form
    > the answers at retry-after:          to all requests that were begun, as far as they are there; `all` waits
    < 200 {"status": "…"}                  the answer; headers are shown by names that end with a colon
    * m/1.0 body (TYPE) "cat", url_path "" what a worker got: the parameters, the head of its tensors, and what the
                                           daemon adds to the headers
    # m/1.0 400: 2, refused invalid: 2     counts that are not zero: requests whose version was named, and others,
                                           answers by status, refusals by reason
    = m/1.0 ready: 0 1, batch_size: 4      which of all workers that were ever started are, unusual settings, and
                                           who looks at all requests
"""

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.api.house import House
from tests.http.peer import Answer, Peer
from tsctl.daemon.core.arena import Payload
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.slot import SlotState
from tsctl.handlers.sdk.built_in import declaration_of
from tsctl.handlers.wire import Declared, Input

JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
ADDED = ("url_path", "explain", "describe", "ts_request_sequence", "X-Dialogue")
TURNS = 4  # of the loop: commands run in tasks
_OF_EXTENSIONS = {
    row.name: next(each.default for each in extension.settings if each.name == row.daemon)
    for extension in EXTENSIONS
    for row in extension.model_settings
    if row.daemon
}
USUAL = vars(
    ModelSettings(queue_jobs=2, queue_bytes=2**28, response_timeout=120.0, startup_timeout=120.0, **_OF_EXTENSIONS)
)
CHANGEABLE = ", ".join(row.rest for row in MODEL_SETTINGS if row.rest and row.changes)


class Talking(House):
    """A house whose requests have headers in common, and some are answered later."""

    def __init__(self, root: Path, **given: Any) -> None:
        super().__init__(root, **given)
        self.registry.routes.random.seed(1)
        self.headers: dict[str, str] = {}
        self.begun: list[Peer] = []

    def send(self, method: str, target: str, body: bytes = b"", *headers: str) -> Peer:
        return super().send(method, target, body, *headers, *(f"{name} {each}" for name, each in self.headers.items()))


async def play(lines: list[str], root: Path) -> list[str]:
    """Ask again, with files in an empty directory, and return the lines as they would have to be."""
    first = lines[0] if lines[0].startswith("+ house ") else "+ house {}"
    house = Talking(root, **json.loads(first[8:]))
    return await talk(lines, house, root, lambda asked: _answered(house, asked))


async def talk(
    lines: list[str], house: House, root: Path, answered: Callable[[str], Awaitable[list[str]]]
) -> list[str]:
    """Arrange and ask again; `answered` asks, and returns the lines of the answer."""
    made, state, seen = list[str](), dict[str, str](), list[Job]()
    for line in lines:
        if line.startswith("+ "):
            made.append(line)
            verb, _, rest = line[2:].partition(" ")
            await _arrange(house, root, verb, rest)
            state = _state(house)
            made += [f"# {_counted(model)}" for model in house.registry if verb == "counted"]
            made += _jobs(house, seen) if verb != "ask" else _jobs(house, seen)[:0]
        elif line.startswith("> "):
            made += [line, *await answered(line[2:].replace("FOLDER", str(root)))]
            made += _jobs(house, seen)
            before, state = state, _state(house)
            made += [f"= {name} {told}" for name, told in state.items() if before.get(name) != told]
            made += [f"= {name} is gone" for name in before if name not in state]
    return [line.replace(str(root), "FOLDER").replace(CHANGEABLE, "ALL-THAT-CHANGES") for line in made]


async def _arrange(house: House, root: Path, verb: str, rest: str) -> None:
    names, _, more = f" {rest}".partition(" {")
    given: dict[str, Any] = json.loads("{" + more) if more else {}
    word, _, value = names.strip().partition(" ")
    match verb, word:
        case "house", _:
            ...
        case "put", name:
            files = given.pop("files", {})
            directory = house.put(name, **given)
            for file, text in files.items():
                (directory / file).write_text(text)
        case "archive", name:
            write_archive(Packing(model_name=name, version=value, handler="image_classifier"), root / given["in"])
        case "serve", name:
            await house.serve(name, value or "1.0", **given)
        case "handler", built_in if built_in:
            house.engine.declared = declaration_of(built_in)
        case "handler", _:
            tensors = {way: [Input(*each) for each in given.pop(way, [])] for way in ("inputs", "outputs")}
            house.engine.declared = Declared(**{"batches": True} | given | tensors)
        case "load", "takes":
            house.engine.load_time = float(value.split()[-1])
        case "load", "works":
            house.engine.load_failure = None
        case "load", "has":
            house.engine.load_failure = LoadFailure("MemoryError", out_of_memory=True)
        case "load", _:
            house.engine.load_failure = LoadFailure(value, "Traceback: here")
        case "batch", _:
            _, seconds, *each = names.split()
            house.engine.batch_time = lambda size: float(seconds) * (size if each else 1)
        case "capacity", _:
            house.engine.capacity = int(word)
        case "header", _ if isinstance(house, Talking) and value:
            house.headers[word] = value.strip('"')
        case "header", _ if isinstance(house, Talking):
            del house.headers[word]
        case "event", kind:
            house.registrar.events.add(kind, value, **given)
        case "pass", _:
            step = float(value.split()[-1]) if value else float(word)
            for _ in range(round(float(word) / step)):
                house.clock.advance(step)
                await _turn(house)
        case "ask", count:
            _, seconds, method, target, body = value.split()
            for _ in range(int(count)):
                house.send(method, target, body.encode())
                house.clock.advance(float(seconds))
                await _turn(house)
        case "begin", method if isinstance(house, Talking):
            target, _, body = value.partition(" ")
            house.begun.append(house.send(method, target, (body + " {" + more if more else body).strip().encode()))
        case "stream", _:
            job = [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs][-1]
            job.stream(Piece(int(given.get("status", 200)), given["body"].encode("latin-1")))
        case "answer", status:
            headers, of = [(name, each) for name, each in given.pop("headers", [])], given.pop("of", "")
            reply, other = Reply(int(status), given.pop("body").encode(), headers=headers, **given), house.engine.answer
            house.engine.answer = lambda job: reply if of in ("", _version_of(house, job)) else other(job)
        case "stop", name:
            house.registry.find(name).stop()
        case "end", _:
            house.engine.workers[int(word)].die()
        case "counted", _:
            ...
        case "only", "management":
            house.manage_alone()
        case "only", _:
            house.serve_predictions_alone()
        case "expect", name:
            house.registry.expect(name)
        case "settle", name:
            house.registry.settle(name, value)
        case "leave", _ if isinstance(house, Talking):
            house.begun[-1].leave()
        case "started", _:
            house.started = word == "yes"
        case "gate", _:
            getattr(house.registrar.gate, {"closed": "close"}.get(word, "open"))()
        case _:
            raise ValueError(verb, rest)
    await _turn(house)


async def _turn(house: House) -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
        house.clock.settle()


def _version_of(house: House, job: Job) -> str:
    """Return the version whose worker has a job."""
    return next(
        worker.spec.model_version
        for worker in house.engine.workers
        if any(job in batch.jobs for batch in worker.batches)
    )


async def _answered(house: Talking, asked: str) -> list[str]:
    if asked == "the answer":
        exchange = house.exchanges[-1]
        await house.until(lambda: exchange.done)
        (answer,) = house.peers[-1].answers
        return _told_of(answer, [])
    if asked.startswith(("the answers", "all answers")):
        await house.until(lambda: asked.startswith("the") or all(peer.answers for peer in house.begun))
        return [line for peer in house.begun for line in _answers_of(peer, asked.split()[3:])]
    method, target, rest = f"{asked} ".split(" ", 2)
    word, *parts = rest.split() or [""]
    body, parts = ("", parts) if word in ("at", "grep") else (rest.strip(), [])
    kinds = [JSON] * body.startswith(("{", "[")) + [FORM] * (word == "form")
    if word == "form":
        body = body.removeprefix("form").lstrip()
    answer = await house.ask(method, target, body.encode(), *kinds)
    if word == "grep":
        return [f"< {_masked(line)}" for line in answer.body.decode().splitlines() if re.match(parts[0], line)]
    return _told_of(answer, parts)


def _answers_of(peer: Peer, parts: list[str]) -> list[str]:
    if peer.transport.aborted:
        return ["< is cut off"]
    return [line for answer in peer.answers for line in _told_of(answer, parts)] or ["< nothing yet"]


def _told_of(answer: Answer, parts: list[str]) -> list[str]:
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        events = answer.body.decode().removesuffix("\n\n").split("\n\n")
        return [f"< {answer.status} events", *(f"< {_masked(each)}" for each in events)]
    if answer.headers.get("content-type") == "application/x-ndjson":
        return [f"< {answer.status} lines", *(f"< {line}" for line in answer.body.decode().splitlines())]
    again = answer.headers.get("retry-after")
    return [f"< {answer.status}{f' (retry-after: {again})' * (again is not None)} {_shown(answer, parts)}"]


def _shown(answer: Answer, parts: list[str]) -> str:
    named = [each for each in parts if each.endswith(":")]
    if named:
        headers = ", ".join(f"{name} {answer.headers.get(name[:-1], 'is not there')}" for name in named)
        return (
            f"{headers} {_shown(answer, rest)}" if (rest := [part for part in parts if part not in named]) else headers
        )
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return _masked(json.dumps(answer.body.decode(), ensure_ascii=False))
    document = json.loads(answer.body)
    told = {part: _part(document, part.split(".")) for part in parts}
    return _masked(json.dumps(told if len(told) > 1 else [*told.values(), document][0], ensure_ascii=False))


def _masked(text: str) -> str:
    """Hide what is another one each time: times, the machine's name, and ids of OpenAI's API."""
    text = re.sub(r"((?:chat)?cmpl-)[0-9a-f-]+", r"\1ID", text).replace(f'hostname="{socket.gethostname()}"', "HOST")
    text = re.sub(r'("time": )[0-9.]+', r"\1NOW", text)
    return re.sub(r'(\\?"created\\?": ?)[0-9]+', r"\1NOW", text)


def _part(document: Any, path: list[str]) -> Any:
    if not path:
        return document
    if path[0] == "*":
        return [_part(each, path[1:]) for each in document]
    if isinstance(document, list):
        return _part(document[int(path[0])], path[1:])
    return _part(document[path[0]], path[1:]) if path[0] in document else "is not there"


def _jobs(house: House, seen: list[Job]) -> list[str]:
    """Return what workers were given since the last call, each worker's requests together."""
    said = []
    for worker in house.engine.workers:
        name = f"* {worker.spec.model_name}/{worker.spec.model_version}"
        for job in (job for batch in worker.batches for job in batch.jobs if job not in seen):
            seen.append(job)
            params = [_param(*param) for param in job.params]
            params += [f"infer {job.infer}"] * (job.infer is not None)
            params += [f"{each} {json.dumps(value)}" for each, value in job.headers if each.startswith(ADDED)]
            said.append(f"{name} {', '.join(params)}")
    return said


def _param(name: str, kind: str, value: Payload) -> str:
    try:
        shown = json.dumps(bytes(value).decode())
    except UnicodeDecodeError:
        shown = bytes(value).hex(" ")
    return f"{name} ({kind}) {shown}" if kind else f"{name} {shown}"


def _counted(model: ModelVersion) -> str:
    counts = {"named": model.metrics.named.requests, "unnamed": model.metrics.unnamed.requests}
    counts |= {str(code): count for code, count in sorted(model.metrics.codes.items())}
    counts |= {f"refused {why}": count for why, count in sorted(model.metrics.refusals.items())}
    told = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
    return f"{model.name}/{model.version} {told or 'nothing'}"


def _state(house: House) -> dict[str, str]:
    return {f"{model.name}/{model.version}": _state_of(house, model) for model in house.registry}


def _state_of(house: House, model: ModelVersion) -> str:
    started = [*map(id, house.engine.workers)]
    ready = " ".join(str(started.index(id(each.worker))) for each in model.pool.slots if each.state is SlotState.UP)
    wanted = f" of {model.pool.wanted}" if model.pool.wanted != model.pool.ready else ""
    settings: Mapping[str, Any] = vars(model.settings)
    other = {name: each for name, each in settings.items() if name != "origins" and each != USUAL[name]}
    if model.watchers:
        other["watched_by"] = " ".join(type(each).__name__ for each in model.watchers)
    return ", ".join([f"ready: {ready or 'none'}{wanted}", *(f"{name}: {each}" for name, each in other.items())])
