"""What a daemon serves, keeps and tells after each command, over stub workers: text files that are compared whole.

`## the claim` begins one. In it, what happens; what a line says in JSON is of the archive, the command or the file:

    + archive m.mar {"version": "2.0", "holds": "other", "config": "batchSize: 16"}
                                     into the store: its manifest, what a file of it holds, and its model-config.yaml;
                                     `+ archive m`: a directory, `+ archive ROOT/m.mar`: in the folder of the test
    + file mine.py {"content": ""}   another file of the store; `+ touched m.mar`: it has another time; `+ gone m.mar`,
                                     `+ gone .unpacked`: all that is unpacked; `+ properties {"models": …}`
    + load fails WHY                 or `waits`, `works`: of workers that start from now on; `+ loaded`: who waits has
    + batches wait                   until `+ batches run`; `+ dies why`: the youngest worker
    + declares {"batches": true}     what handlers say, `{}` for nothing; `+ notes`; `+ rows 4`: the most of their model
    + full, + space                  the disk takes no snapshot, and does; `+ in the snapshot TEXT is TEXT`: an edit
    > register m.mar {"workers": 1}  with settings and what else a registration says; `replace`, `replace anew`
    > scale m/1.0 2 3, > retry m/1.0, > default m/1.0, > unregister m/1.0 {"owner": "mine"}
    > set m/1.0 {"batch_size": 4}
    > begin replace m.mar            any command; nobody waits for it
    > send a & b, > send a n         requests to `m`, to another model
    > stop 0, > end, > left mine     the daemon stops, ends at once; the process of an owner has ended
    > restart {"models": "m.mar"}    as after a kill, with these flags; `> restore`: and does not load `> the list` yet
    # of what follows                a sentence for who reads

The rest is written by `python -m tests.lab transcripts`: what is different since the line before.

    ! Conflict 409: …                the command has failed; `! stop 5: done`: how one that was begun has ended
    = m/1.0 ready, 2 of 2 to 3 workers, of m.mar: batch_size 4 (register)
                                     a version, and its settings with who has said them, but for defaults
    = m/1.0 is gone                  `= unpacked: 2`: archives; `= batch of a b`: a worker has got it
    = snapshot m/1.0 batch_size 4 (set)  what the disk says of a version
    < a 200                          an answer
    . scaled m/1.0: to 2 workers     an event; `~ a line of the log`

After every line, only workers of live versions live, and an ephemeral version is not on the disk; a command leaves
the store alone, and what is served has files.
"""

import asyncio
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import NEVER, StubDaemon
from tsctl.daemon.core.clock import LoopClock, Timer
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.models import build, retirement
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.settings import ROWS, Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.handlers.wire import Declared, Input, Loaded

_LATER = LoopClock.later
_KEPT_BY_THE_ENGINE = ("load_time", "load_failure", "declared", "report", "notes", "batch_time")


async def play(lines: list[str], root: Path) -> list[str]:
    """Let it happen again, and return the lines as they would have to be."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
    made: list[str] = []
    with (
        _Story(root) as story,
        patch.object(retirement, "LEAVE_TIME", 0.0),
        patch.object(LoopClock, "later", _later),
        patch.object(build, "usable_cores", return_value=4),
    ):
        for line in lines:
            if line[:2] == "# ":
                made.append(line)
            elif line[:2] in ("> ", "+ "):
                words, brace, rest = line[2:].partition("{")
                given = json.loads((brace + rest).replace("ROOT", str(root))) if brace else {}
                words = words.replace("ROOT", str(root)) if line[0] == ">" else words
                await (story.command if line[0] == ">" else story.happen)(words.split(), given)
                made += [line, *story.news()]
    return made


class _AtOnce(ThreadPoolExecutor):
    """Runs what is given in the turn of the loop: nothing is under way when the loop has come to rest."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is told to who waits
            future.set_exception(error)
        return future


def _later(clock: LoopClock, delay: float, call: Callable[[], None]) -> Timer:
    """Call at once what is due at once, so that no time passes."""
    return _LATER(clock, delay, call) if delay > 0 else asyncio.get_running_loop().call_soon(call)


class _Story(logging.Handler):
    """A daemon, the ones after it, and what has been told of them."""

    def __init__(self, root: Path) -> None:
        super().__init__(logging.INFO)
        self._root = root
        self._bench = StubDaemon(root)
        self._told: list[str] = []
        self._known: dict[str, str] = {}
        self._events = self._replies = self._batches = 0
        self._begun: set[asyncio.Task[None]] = set()
        self._full: Any = None
        self._stored: list[Path] = []

    def __enter__(self) -> "_Story":
        log = logging.getLogger("tsctl.daemon.models")
        self._level = log.level
        log.addHandler(self)
        log.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        log = logging.getLogger("tsctl.daemon.models")
        log.removeHandler(self)
        log.setLevel(self._level)
        if self._full is not None:
            self._full.stop()
        for task in self._begun:
            if task.done():
                task.result()  # an error that no command may have
            else:
                task.cancel()

    def emit(self, record: logging.LogRecord) -> None:
        self._told.append(f"~ {record.getMessage()}")

    async def happen(self, words: list[str], given: dict[str, Any]) -> None:
        bench, engine = self._bench, self._bench.engine
        match words:
            case ["archive", name]:
                self._write(name, **given)
            case ["file", name]:
                write_files(bench.store, {name: given["content"].encode()})
            case ["properties"]:
                lines = [f"{name}={json.dumps(value)}\n" for name, value in given.items()]
                (self._root / "config.properties").write_text("".join(lines))
            case ["touched", name]:
                os.utime(bench.store / name, ns=(1, 1))
            case ["in", "the", "snapshot", *edited]:
                text = bench.snapshot.read_text()
                before, after = " ".join(edited).split(" is ")
                assert before in text
                bench.snapshot.write_text(text.replace(before, after))
            case ["gone", ".unpacked"]:
                shutil.rmtree(bench.models_dir)
            case ["gone", name]:
                path = bench.store / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            case ["load", "fails", *why]:
                engine.load_failure = LoadFailure(" ".join(why), "Traceback …")
            case ["load", "waits" | "works" as how]:
                engine.load_failure, engine.load_time = None, NEVER if how == "waits" else 0.0
            case ["loaded"]:
                engine.load_time = 0.0
                for worker in engine.workers:
                    if worker.state.name == "STARTING":
                        worker.load_now()
            case ["batches", "wait"]:
                engine.batch_time = lambda size: NEVER
            case ["batches", "run"]:
                engine.batch_time = lambda size: 0.0
                for worker in engine.workers:
                    if worker.in_flight:
                        worker._finish(0.0)
            case ["dies", *why]:
                engine.workers[-1].die(" ".join(why))
            case ["declares"]:
                engine.declared = Declared([Input("texts", "text", "list[str]")], **given) if given else None
            case ["notes", *text]:
                engine.notes = [" ".join(text)]
            case ["rows", most]:
                engine.report = Loaded(0.0, own_handle=False, most_rows=int(most))
            case ["full"]:
                self._full = patch.object(
                    snapshot, "write_snapshot", side_effect=OSError(28, "No space left on device")
                )
                self._full.start()
            case ["space"]:
                self._full.stop()
                self._full = None
            case _:
                raise ValueError(words)
        await _rest()
        self._stored = self._store()

    def _write(self, where: str, /, config: str | None = None, holds: str = "", **model: Any) -> None:
        if config is not None:
            model["configFile"] = "c.yaml"
        files = model_files(**model) | {"c.yaml": (config or "").encode()} | {"holds": holds.encode()}
        place = self._bench.store / where.replace("ROOT", str(self._root))
        if where.endswith(".mar"):
            write_mar(place, files)
        else:
            shutil.rmtree(place, ignore_errors=True)
            write_files(place, files)

    async def command(self, words: list[str], given: dict[str, Any]) -> None:
        if words[0] == "begin":
            running = self._run(words[1:], given)
            self._begun.add(asyncio.create_task(self._tell(running, f"! {' '.join(words[1:])}: ", "done")))
        else:
            await self._tell(self._run(words, given), "! ")
        await _rest()
        assert self._stored == self._store(), "a command leaves the store alone"
        for model in self._bench.registry:
            handler = model.source.manifest.handler.partition(":")[0]
            assert model.lost or "." not in handler or (model.source.directory / handler).is_file()

    def _store(self) -> list[Path]:
        return sorted(self._bench.store.rglob("*"))

    async def _tell(self, running: Coroutine[Any, Any, None], how: str, end: str = "") -> None:
        try:
            await running
        except DaemonError as error:
            self._told.append(f"{how}{type(error).__name__} {error.status}: {error}".replace("\n", "\\n"))
        else:
            if end:
                self._told.append(how + end)

    async def _run(self, words: list[str], given: dict[str, Any]) -> None:
        bench, registrar = self._bench, self._bench.registrar
        waits = given.pop("synchronous", True)
        match words:
            case ["register" | "replace", *how, url]:
                rows = {name: value for name, value in given.items() if name in ROWS}
                more = {name: value for name, value in given.items() if name not in ROWS}
                request = Registration(url=url, overrides=Overrides(**rows), synchronous=waits, **more)
                await registrar.register(request, replace=words[0] == "replace", reset=how == ["anew"])
            case ["scale", model, least, *most]:
                numbers = int(least), int((most or [least])[0])
                await registrar.scale(self._find(model), *numbers, synchronous=waits, progress=no_progress)
            case ["set", model]:
                change_settings(self._find(model), given)
                await registrar.ledger.remember(self._find(model))
            case ["retry", model]:
                await registrar.retry(self._find(model), synchronous=waits, progress=no_progress)
            case ["default", model]:
                name, _, version = model.partition("/")
                await registrar.set_default(name, version)
            case ["unregister", model]:
                name, _, version = model.partition("/")
                await registrar.unregister(name, version or None, **given)
            case ["left", owner]:
                await registrar.unregister_all(owner)
            case ["stop", grace]:
                await registrar.stop(float(grace))
            case ["end"]:
                await registrar.stop_now()
            case ["send", name, *rest]:
                model = rest[0] if rest and rest[0] != "&" else "m"
                for each in [name, *(word for word in rest if word not in ("&", model))]:
                    bench.registry.find(model).submit(bench.client.job(each))
            case ["restart" | "restore"]:
                self._bench = again = StubDaemon(self._root, **given)
                for attribute in _KEPT_BY_THE_ENGINE:
                    setattr(again.engine, attribute, getattr(bench.engine, attribute))
                self._known = {key: told for key, told in self._known.items() if key.startswith(("snapshot", "unpack"))}
                self._events = self._replies = self._batches = 0
                self._startup = Startup(again.config, again.registry, again.registrar)
                self._startup.restore()
                if words == ["restart"]:
                    await self._startup.load()
            case ["the", "list"]:
                await self._startup.load()
            case _:
                raise ValueError(words)

    def _find(self, text: str) -> ModelVersion:
        name, _, version = text.partition("/")
        return self._bench.registry.find(name, version or None)

    def news(self) -> Iterator[str]:
        """Yield what nobody has been told yet."""
        bench, told = self._bench, self._told
        self._told = []
        yield from map(self._masked, told)
        served = [worker for model in bench.registrar.live for worker in model.pool.workers]
        assert all(worker in served or worker.state.name == "EXITED" for worker in bench.engine.workers)
        on_disk = snapshot.read_snapshot(bench.snapshot)
        entries = [entry for model in (on_disk.earlier if on_disk else ()) for entry in model.versions]
        assert not any(entry.request.ephemeral for entry in entries)
        batches = [batch for worker in bench.engine.workers for batch in worker.batches]
        yield from (f"= batch of {' '.join(job.id for job in batch.jobs)}" for batch in batches[self._batches :])
        self._batches = len(batches)
        yield from (f"< {name} {reply.status}" for name, reply in bench.client.replies[self._replies :])
        self._replies = len(bench.client.replies)
        present = {
            **{f"{each.name}/{each.version}": self._of(each) for each in bench.registry},
            **{f"snapshot {name}": self._kept(name) for name in bench.remembered},
            "unpacked:": str(bench.unpacked if bench.models_dir.is_dir() else 0),
        }
        for key in {**present, **self._known}:
            if present.get(key) != self._known.get(key, "0" if key == "unpacked:" else None):
                yield f"= {key} {self._masked(present.get(key, 'is gone'))}"
        self._known = present
        events = bench.registrar.events.after(self._events)
        yield from (f". {each.kind} {each.model}/{each.version}: {self._masked(each.text)}" for each in events)
        self._events = bench.registrar.events.last

    def _of(self, model: ModelVersion) -> str:
        """Return all that is told of a version."""
        settings, pool, presence = model.settings, model.pool, model.presence
        chosen = {name: getattr(settings, name) for name, origin in settings.origins.items() if origin != "default"}
        if "workers" in chosen and chosen.get("max_workers") == chosen["workers"]:
            del chosen["max_workers"]
        values = ", ".join(f"{name} {value} ({settings.origins[name]})" for name, value in sorted(chosen.items()))
        several = len([each for each in self._bench.registry if each.name == model.name]) > 1
        holds = model.source.directory / "holds"
        numbers = f"{presence.least} to {presence.most}" if presence.least != presence.most else f"{presence.most}"
        told = [worker.spec.batch_size for worker in self._bench.engine.workers if worker in pool.workers]
        kept = " ".join(model.before.kept) if model.before else ""
        why_not = model.replacement.error if model.replacement else ""
        ended = pool.last_exit and pool.last_exit.code != 0 and pool.last_exit.reason
        content = holds.read_text() if holds.is_file() else ""
        handler = model.source.manifest.handler
        words = {
            f"{model.word}, {pool.ready} of {numbers} workers, of {model.source.url}": True,
            f"which holds {content}": content,
            f"by {handler}": handler != "handler.py",
            "in place": model.source.unpacked is None and not model.lost,
            "the default": several and self._bench.registry.find(model.name) is model,
            "at the start": model.at_startup,
            "unhealthy": not model.healthy,
            "listed": model.source.listed,
            "ephemeral": model.request.ephemeral,
            "is being replaced": model.being_replaced,
            "beside the one before": model.replaces is not None,
            "took over": model.took_over,
            f"kept {kept}": kept,
            f"not replaced: {why_not}": why_not,
            "typed": model.declared,
            f"notes {list(model.notes)}": model.notes,
            f"at most {model.traffic.most} in a batch": model.traffic.most != settings.batch_size,
            f"workers are told {told}": {*told} - {settings.batch_size},
            f"failed: {pool.failure and pool.failure.error}": pool.failure,
            f"ended: {ended}": ended,
        }
        return ", ".join(word for word, holds in words.items() if holds) + f": {values}" * bool(values)

    def _kept(self, name: str) -> str:
        entry = self._bench.remembered[name]
        overrides = entry.request.overrides
        said = ", ".join(
            f"{row} {value}" + f" ({overrides.since.get(row)})" * (row in overrides.since)
            for row, value in overrides.said.items()
        )
        unpacked = {f"{each.name}/{each.version}": each.source.unpacked for each in self._bench.registry}.get(name)
        of_another = unpacked is not None and entry.unpacked != unpacked.name
        words = {"listed": entry.listed, "chosen": entry.chosen, "not what is served": of_another}
        return ", ".join([said or "nothing said", *(word for word, holds in words.items() if holds)])

    def _masked(self, text: str) -> str:
        return re.sub("[0-9a-f]{32,}", "DIGEST", text.replace(str(self._root), "ROOT")).replace("\n", "\\n")


async def _rest() -> None:
    """Let the loop turn until nothing is under way that does not wait for the test."""
    for _ in range(200):
        await asyncio.sleep(0)
