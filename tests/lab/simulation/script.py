"""The code of a simulated worker process, as in handlers/worker.py: load, then run one batch after the other.

A batch may stream more than its clients read. The windows are those of handlers/credit.py, on the virtual loop; the
daemon's side is production's. The checks: credit is granted for bytes a client has read, nothing comes after a cut, and
a wait is not the worker's time.

Faults are random: the worker fails to load, dies in a batch, hangs, answers too late, or violates the protocol. A
request whose name ends with `!` is poison: the worker that starts it dies.
"""

from collections import Counter, deque
from typing import TYPE_CHECKING

from tests.lab.simulation.memory import Reader
from tests.lab.simulation.sequences import END, ID
from tsctl.handlers import wire
from tsctl.handlers.credit import WINDOW, Pieces, Windows

if TYPE_CHECKING:
    from tests.lab.simulation.process import Process
    from tests.lab.simulation.world import World

SIGKILL = -9
SIZE = WINDOW // 3  # bytes of a piece
COUNT = 6  # pieces of a row: two windows
HEARD = 0.01  # seconds after which the daemon has received a worker's message
PADDING = bytes(SIZE)


class Script:
    """The work of one process.

    Attributes:
        running: the running batch, or None.
        batch_size, threads: the latest received values.
        reader: reads the bodies in shared memory.
    """

    def __init__(self, process: "Process", world: "World") -> None:
        self.running: wire.Predict | None = None
        self.batch_size = self.threads = 0
        self._process = process
        self._world = world
        self._chance = process.chance
        self._later = world.loop.outside
        self._pour: Pour | None = None
        self._inbox: deque[wire.Predict] = deque()
        self.reader = Reader(process, world)
        self._asked_to_leave = False
        self._sequences = process.made.sequences
        self._granted: Counter[str] = Counter()  # bytes of credit, by request

    def __repr__(self) -> str:
        return "" if self.running is None else f" with {' '.join(row.id for row in self.running.rows)}"

    @property
    def busy(self) -> bool:
        """Whether a handler has requests."""
        return self.running is not None

    @property
    def stopped(self) -> bool:
        return self._process.stopped

    def waits_for_clients(self, batch: int) -> bool:
        """Return whether this batch is blocked until its clients read."""
        return not self.stopped and self._pour is not None and self._pour.waits(batch)

    def check_credit(self, name: str, count: int) -> None:
        self._granted[name] += count
        reader = self._world.readers.get(name)
        if reader is not None and self._granted[name] > reader.taken:
            self._world.broken("credit is given for what a client has read", name=name, granted=self._granted[name])

    def say(self, message: wire.ToDaemon) -> None:
        self._process.say(message)

    def hear(self, message: wire.ToWorker | None) -> None:
        """Handle a message of the daemon; None: the daemon closed its end."""
        if message is None:
            self._asked_to_leave = True
            self._go_on()
        elif isinstance(message, wire.Load):
            self.batch_size, self.threads = message.batch_size, message.threads
            self._load()
        elif isinstance(message, wire.BatchSize):
            self.batch_size = message.most
        elif isinstance(message, wire.Threads):
            self.threads = message.count
        elif isinstance(message, wire.Credit):
            if self._pour is not None:
                self._pour.grant(message)
        elif isinstance(message, wire.Predict):
            self.reader.sent(message)
            self._inbox.append(message)
            self._go_on()

    def _load(self) -> None:
        seconds = self._world.plan.load_time * self._chance.uniform(0.5, 1.5)
        if self._process.has("load_slow"):
            seconds += self._chance.uniform(0.0, 1.2) * self._process.spec.startup_timeout
        if self._process.has("load_hangs"):
            self._world.note("%r: hangs while it loads", self._process)
        elif self._process.has("load_crashes"):
            self._later(seconds, self._process.end, self._chance.choice((SIGKILL, 1)))
        elif self._process.has("load_fails"):
            self._later(seconds, self._cannot_load)
        else:
            self._later(seconds, self._process.say, wire.Loaded(seconds, self._world.plan.own_handle))

    def _cannot_load(self) -> None:
        self._process.say(wire.LoadFailed("ValueError: weights", "Traceback …"))
        self._later(0.0005, self._process.end, wire.EXIT_LOAD_FAILED)

    def _go_on(self) -> None:
        if self.running is not None or self._process.stopped:
            return
        if self._inbox:
            self.running = self._inbox.popleft()
            self._world.began(self._process, self.running)
            self.reader.read(self.running)
            self._run(self.running)
        elif self._asked_to_leave and not self._process.has("deaf"):
            self._later(0.0005, self._process.end, 0)

    def _run(self, batch: wire.Predict) -> None:
        a, c = self._world.plan.service
        seconds = (a + c * len(batch.rows)) * self._chance.uniform(0.9, 1.1)
        later, part = self._later, self._chance.random()
        if self._process.has("streams"):
            later(seconds * part * 0.9, self._stream, batch)
        if any(row.id.endswith("!") for row in batch.rows) or self._process.has("dies"):
            later(seconds * part, self._process.die, self._chance.choice((SIGKILL, 1, -11)))
        elif self._process.has("hangs"):
            self._world.note("%r: hangs%r", self._process, self)
        elif self._process.has("leaves"):
            later(seconds * part, self._leave_connection)
        elif self._process.has("confused"):
            later(seconds, self._confuse, batch)
        elif self._process.has("isolates"):
            later(seconds, self._isolate, batch, seconds)
        elif self._process.whether(self._world.plan.pours):
            self._pour = Pour(self, self._world, batch, seconds / 6)
            later(seconds / 6, self._pour.pour)
        else:
            if self._process.has("late"):
                timeout = self._process.spec.response_timeout
                just = self._chance.random() < 0.5  # answers around the timeout itself
                seconds = timeout + self._chance.uniform(-0.001, 0.001) if just else seconds + timeout * part * 2
            later(seconds, self._finish, batch, seconds)

    def _leave_connection(self) -> None:
        if not self._process.stopped:
            self._world.note("%r: closes its connection%r", self._process, self)
            self._process.hang_up()

    def _stream(self, batch: wire.Predict) -> None:
        if self.running is batch and not self._process.stopped:
            row = self._chance.randrange(len(batch.rows))
            piece = wire.Answer(200, batch.rows[row].id.encode())
            self._world.note("%r: a piece for %s", self._process, batch.rows[row].id)
            self._process.say(wire.Chunk(batch.batch, [(row, piece)]))

    def _isolate(self, batch: wire.Predict, seconds: float) -> None:
        """Run each row alone after the handler raised, and report that the batch continues."""
        if not self._process.stopped:
            self.reader.read(batch)
        self._process.say(wire.Chunk(batch.batch, []))
        again = seconds * len(batch.rows)
        answers = [answer_to(row, failed=self._chance.random() < 0.3) for row in batch.rows]
        failed = sum(answer.status != 200 for answer in answers)
        isolation = wire.Isolation(failed, again)
        self._later(again, self._answer, batch, wire.Done(batch.batch, answers, seconds + again, [], isolation))

    def finish(self, batch: wire.Predict, seconds: float, cut: set[int]) -> None:
        """Answer a batch that has streamed; cut rows fail."""
        self._pour = None
        answers = [answer_to(row, failed=number in cut) for number, row in enumerate(batch.rows)]
        self._answer(batch, wire.Done(batch.batch, answers, seconds))

    def _finish(self, batch: wire.Predict, seconds: float) -> None:
        raises = self._process.has("raises")
        answers = [self._may_end_sequence(row, answer_to(row, failed=raises)) for row in batch.rows]
        self._answer(batch, wire.Done(batch.batch, answers, seconds))

    def _may_end_sequence(self, row: wire.Row, answer: wire.Answer) -> wire.Answer:
        """Let an answer end its row's sequence, sometimes."""
        if self._sequences and self._chance.random() < 0.1:
            answer.headers = [(END, value) for key, value in row.headers if key == ID]
        return answer

    def _confuse(self, batch: wire.Predict) -> None:
        """Violate the protocol, then answer; the daemon must expect anything after a violation."""
        answers = [answer_to(row) for row in batch.rows]
        odd: list[wire.ToDaemon] = [
            wire.Done(batch.batch, answers[1:], 0.01),
            wire.Done(batch.batch, [*answers, *answers], 0.01),
            wire.Done(batch.batch + 1, answers, 0.01),
            wire.Chunk(batch.batch, [(len(answers), answers[0])]),
            wire.Chunk(batch.batch, [(-1 - len(answers), answers[0])]),
            wire.Loaded(0.1, False),
            wire.Hello(1),
        ]
        said = self._chance.choice(odd)
        self._world.note("%r: is confused, and says %r", self._process, said)
        self._process.say(said)
        self._answer(batch, wire.Done(batch.batch, answers, 0.01))

    def _answer(self, batch: wire.Predict, done: wire.Done) -> None:
        if self._process.stopped or self.running is not batch:
            return
        self.running = None
        self.reader.answered(batch)
        self._world.wrote(self._process, batch, done.seconds)
        self._process.say(done)
        self._go_on()


class Pour:
    """A handler that streams to all rows of its batch, and waits for those whose windows are used up.

    Args:
        pause: seconds from one piece to the next.
    """

    def __init__(self, script: Script, world: "World", batch: wire.Predict, pause: float) -> None:
        self.waited = 0.0
        self._script = script
        self._world = world
        self._batch = batch
        self._pause = pause
        self._windows = Windows()
        self._count = 0
        self._waiting: Pieces = []
        self._began = 0.0
        self._sent = 0.0  # when the last pieces were sent
        self._waits = 0

    def waits(self, batch: int) -> bool:
        """Return whether this batch waits for its clients, having been on time, and the daemon must already know."""
        on_time = self._began - self._sent <= self._pause + HEARD  # the machine may have stalled
        heard = self._world.loop.now() - self._began > HEARD
        return bool(self._waiting) and batch == self._batch.batch and on_time and heard

    def pour(self) -> None:
        """Send a piece to each row, or finish."""
        if self._script.running is not self._batch or self._script.stopped:
            return
        if self._count == COUNT:
            self._script.finish(self._batch, COUNT * self._pause, self._windows.cut)
            return
        self._count += 1
        names = [row.id.encode() for row in self._batch.rows]
        self._send([(row, wire.Answer(200, name + b" " + PADDING)) for row, name in enumerate(names)])

    def grant(self, credit: wire.Credit) -> None:
        """Apply the daemon's credit."""
        if credit.batch != self._batch.batch:
            return
        self._script.check_credit(self._batch.rows[credit.row].id, credit.count)
        self._windows.grant(credit.row, credit.count)
        if self._waiting and self._windows.may_go_on(self._waiting):
            self._end_wait(self._world.loop.now() - self._began)

    def _send(self, pieces: Pieces) -> None:
        now, self._waiting = self._windows.split(pieces)
        if now or not self._waiting:
            self._script.say(wire.Chunk(self._batch.batch, now))
            self._sent = self._world.loop.now()
        if not self._waiting:
            self._world.loop.outside(self._pause, self.pour)
            return
        self._windows.begin_wait()
        self._began = self._world.loop.now()
        self._waits += 1
        self._world.loop.outside(max(0.0, self._windows.patience), self._give_up, self._waits)

    def _give_up(self, number: int) -> None:
        if self._waiting and number == self._waits and not self._script.stopped:
            self._end_wait(max(self._windows.patience, 0.0))

    def _end_wait(self, seconds: float) -> None:
        waiting, self._waiting = self._waiting, []
        cut = self._windows.end_wait(seconds, waiting)
        if cut:
            self._script.say(wire.Cut(self._batch.batch, cut))
        self._send(waiting)


def answer_to(row: wire.Row, failed: bool = False) -> wire.Answer:
    """Return an answer that contains its row's id."""
    if failed:
        return wire.Answer(503, row.id.encode(), "Prediction failed", [], "InternalServerException")
    return wire.Answer(200, row.id.encode())
