"""The clients of a run: their requests, patience and disconnects, as inference/predict.py treats them."""

import random
from typing import TYPE_CHECKING

from tests.lab.simulation.ledger import Entry, Served, check_accepted, check_refused, note_answer, note_parked
from tsctl.daemon.core.arena import SHARED_FROM, Payload
from tsctl.daemon.core.errors import DaemonError, QueueFull
from tsctl.daemon.core.job import Caller, Job, JobPhase, Param, Piece, Reply, TimeBudget
from tsctl.daemon.extensions.quarantine.quarantine import Quarantined
from tsctl.handlers import wire
from tsctl.handlers.credit import LATE_WINDOW, cost_of

if TYPE_CHECKING:
    from tests.lab.simulation.world import World

_LENGTHS = (SHARED_FROM, SHARED_FROM, SHARED_FROM + 1, 3 * SHARED_FROM)
BUDGETS = (0.003, 0.02, 0.1, 0.5, 2.0, 60.0)


class Clients:
    """All clients of one world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._callers = [Caller() for _ in range(world.plan.connections)]
        self._asked = 0
        self._bodies = random.Random(f"bodies {world.plan.seed}")  # separate from other random numbers
        self._words = random.Random(f"words {world.plan.seed}")
        for at, size in world.plan.bursts:
            world.loop.outside(at, self.burst, size)

    def burst(self, size: int) -> None:
        """Send several requests at once."""
        for _ in range(size):
            self.ask()

    def ask(self, served: Served | None = None, *, poison: bool = False) -> Entry | None:
        """Send one request, to that version or to any; return the entry if the request was accepted.

        Args:
            poison: the request kills its worker; if False, by the plan's probability.
        """
        world, chance, plan = self._world, self._world.chance, self._world.plan
        self._asked += 1
        poison |= chance.random() < plan.poison and not world.healed
        name = f"r{self._asked}{'!' if poison else ''}"
        model_name, version, _ = chance.choice(world.plan.models)
        try:
            unnamed = served is None and chance.random() < 0.3
            if served is None:
                model = world.registry.find(model_name, None if unnamed else version)
                served = world.served_of(model)
            model = served.model
            entry = Entry(name, self._asked, served)
            job = entry.job = self._job(entry, unnamed)
            served.dirty = True
            served.counts["requests"] += 1
            full, book = is_full(served, job), served.sequences if entry.mark is not None else None
            unfit = None if book is None or entry.mark is None else book.refusal(entry.mark)
            world.entries[name] = entry
            try:
                model.submit(job)
            except DaemonError as error:
                del world.entries[name]
                if isinstance(error, Quarantined):
                    served.counts["refused as suspects"] += 1
                    check_refused(world, entry)
                if book is not None:
                    book.refused(entry, error, unfit)
                if isinstance(error, QueueFull) and not full:
                    world.broken("only a full queue refuses", entry=entry, queue=model.queue)
                if entry.reply is not None:
                    world.broken("a refused request is not answered as well", entry=entry)
                job.params = ()  # breaks a cycle with the entry, which would keep the arena memory
                raise
        except DaemonError as error:
            world.note("%s is refused: %s", name, error)
            return None
        if full:
            world.broken("a full queue takes nothing more", entry=entry, queue=served.model.queue)
        served.open[name] = entry
        if book is not None:
            book.accepted(entry, unfit)
        check_accepted(world, entry)
        note_parked(served)
        world.jobs.append(job)
        world.note("%s is accepted by %r%s", name, served, _words(job))
        if chance.random() >= plan.patient and not world.healed:
            world.loop.outside(chance.choice((0.0, 0.001, 0.05, 1.0)), self.leave, entry)
        return entry

    def _job(self, entry: Entry, unnamed: bool) -> Job:
        world, chance, plan = self._world, self._world.chance, self._world.plan
        now, settings = world.loop.now(), entry.served.model.settings
        solo = chance.random() < plan.solo
        low = not solo and chance.random() < plan.low
        entry.lane = "solo" if solo else "low" if low else "normal"
        budget = TimeBudget(settings.client_timeout, now, "its model") if settings.client_timeout else None
        if not solo and chance.random() < plan.timed:
            asked = chance.choice(BUDGETS)
            if budget is None or asked <= settings.client_timeout:
                budget = TimeBudget(asked, now - chance.choice((0.0, 0.001, 0.01)), "its client")
        caller = None
        if not solo:
            caller = chance.choice(self._callers) if self._callers else Caller()
        body: Payload = bytes(chance.choice((0, 1, plan.large)))
        if not solo and self._bodies.random() < plan.stored:
            body = world.memory.store(entry.name, self._bodies.choice(_LENGTHS)) or body
        words = self._words_of(entry.name)
        headers = [("x-request-id", entry.name), ("x-words", words)]
        if entry.served.sequences is not None and not solo:
            entry.mark = entry.served.sequences.draw(entry.name)
            headers += entry.mark.headers
        entry.same = (words, len(body), "" if isinstance(body, bytes) else entry.name)

        def stream(piece: Reply) -> None:
            if entry.name not in world.readers:
                world.readers[entry.name] = Reader(world, self, entry)
            world.readers[entry.name].take(piece)

        def deliver(reply: Reply) -> None:
            note_answer(world, entry, reply)
            if not self._callers and caller is not None:
                caller.close()

        return Job(
            entry.name, () if solo else [Param("body", "", body)], headers, now, deliver,
            stream, unnamed=unnamed, exclusive=solo, low_priority=low, budget=budget, caller=caller,
        )  # fmt: skip

    def _words_of(self, name: str) -> str:
        """Draw the words that make requests equal: poison never equals a harmless request."""
        kinds = [name, name, "1", "2", "3"] if not self._world.healed else [name]
        return f"{self._words.choice(kinds)}{'!' if name.endswith('!') else ''}"

    def leave(self, entry: Entry) -> None:
        """Close a client's connection: all requests on that connection are abandoned."""
        caller, world = entry.job.caller, self._world
        if entry.reply is not None or entry.left:
            return
        for other in [entry] if caller is None else list(world.entries.values()):
            if other is entry or (other.job.caller is caller and other.reply is None and not other.left):
                self._leave(other)
        if caller is not None:
            if caller in self._callers:
                self._callers[self._callers.index(caller)] = Caller()
            caller.close()

    def _leave(self, entry: Entry) -> None:
        world = self._world
        world.note("the client of %s leaves", entry.name)
        entry.left, entry.over = True, world.loop.now()
        entry.served.dirty = True
        entry.served.model.abandon(entry.job)
        if entry.job.phase is JobPhase.ENDED:
            entry.served.open.pop(entry.name, None)
            world.forget(entry)

    def close(self) -> None:
        """Close all connections."""
        for caller in self._callers:
            caller.close()


class Reader:
    """The client of one streamed response. By seed, the client reads at once, after a while, or never.

    Attributes:
        taken: bytes of the window read so far.
        cut: the daemon has ended the response, because it is not read.
    """

    def __init__(self, world: "World", clients: Clients, entry: Entry) -> None:
        self.taken = 0
        self._world = world
        self._clients = clients
        self._entry = entry
        self._unread = 0
        self.cut = False
        chance = random.Random(f"reader {world.plan.seed} {entry.name}")
        self._pause: float | None = chance.choice((0.0, 0.0, 0.0, chance.uniform(0.0, 1.5), None, None))

    def take(self, piece: Reply) -> None:
        """Receive a piece of the response."""
        assert isinstance(piece, Piece)
        entry = self._entry
        if entry.reply is not None or entry.left:
            self._world.broken("no piece comes after the end", entry=entry, piece=len(piece.body))
        if self.cut:
            self._world.broken("nothing comes after a cut", entry=self._entry, piece=len(piece.body))
        if piece.unread:
            self.cut = True
            stalled = self._world.loop.stalled > 0.0 and entry.served.by_rows  # a row does not wait for the daemon
            if self._pause == 0.0 and not stalled:
                self._world.broken("only who does not read is cut", entry=self._entry)
            self._world.note("%s is cut", self._entry.name)
            self._world.loop.outside(0.0, self._clients.leave, self._entry)  # the daemon closes the connection
            return
        assert piece.flow is not None
        piece.flow.wanted = True
        if entry.served.by_rows and piece.body.split(b" ", 2)[:2] != [entry.name.encode(), b"%d" % entry.told]:
            self._world.broken("pieces come to whoever asked, in their order", entry=entry, piece=piece.body[:40])
        entry.told += 1
        self._unread += cost_of(wire.Answer(piece.status, piece.body))
        if self._unread > LATE_WINDOW + len(piece.body) + 1000:
            self._world.broken("a client is sent no more than its window", entry=self._entry, unread=self._unread)
        if self._pause == 0.0:
            self._read(piece)
        elif self._pause is not None:
            self._world.loop.outside(self._pause, self._read, piece)

    @property
    def slow(self) -> bool:
        """Whether the client does not read at once."""
        return self._pause != 0.0

    def _read(self, piece: Piece) -> None:
        """Read all received pieces."""
        assert piece.flow is not None
        self.taken += self._unread
        self._unread = 0
        if self._entry.left and self._pause != 0.0:
            piece.flow.refuse()
        else:
            piece.flow.drained()


def is_full(served: Served, job: Job) -> bool:
    """Return whether a queue must reject a job, by the limits of its version."""
    settings = served.model.settings
    waiting = [entry.job.size for entry in served.open.values() if entry.job.phase is JobPhase.QUEUED]
    hands = [(list(worker.in_flight), worker.in_flight.overdue is None) for worker in served.model.pool.workers]
    ahead = 0 if served.by_rows else sum(len(batch.jobs) for batches, begun in hands for batch in batches[begun:])
    if len(waiting) + ahead >= settings.queue_jobs:
        return True
    return bool(waiting) and sum(waiting) + job.size > settings.queue_bytes


def _words(job: Job) -> str:
    words = [word for word, holds in (("low", job.low_priority), ("solo", job.exclusive)) if holds]
    if job.budget is not None:
        words.append(f"{job.budget.seconds:g} s")
    return f" ({', '.join(words)})" if words else ""
