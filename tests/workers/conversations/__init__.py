"""The daemon's conversation with a worker process, which a line plays: text files that are compared whole.

`## the claim` begins one, with a worker that has said hello. In it, what happens:

    + worker {"retry": true}         its specification (tests/kit/build.py), the first line; `rows`: it runs row by row
    > 1 ab & 2 cd                    batches in one turn, each with its number and a request for each letter
    + says loaded, + says done 1 0.5 a b        the model; the answers to a batch, and its seconds
    + says piece 1 0 x, + says cut 1 1          a piece of a row's answer; a row whose client is not waited for
    + says round 1=a1 2=b1 more 2=b2 done 1     pieces of rows, further ones, and ends
    + says load failed WHY, + says gpu lost WHY, + says nonsense
    + pass 4                         seconds
    + drain 2, + kill, + suspend, + resume, + cancel a, + limits 2 10       what the pool does
    + over {"reason": "killed"}      the process has ended: fields of an `Exit`; `+ closes`: its end of the socket
    + life {"node": "node-1"}        fields of the process; `+ window 0`, `+ takes 100`: the bytes that it reads

The rest is written by `python -m tests.lab transcripts`: what was told to the pool, the process and the clients.
"""

import json
import math
from typing import Any

from tests.kit.build import make_spec
from tests.kit.worker import LoneWorker, PlayedProcess
from tsctl.daemon.core.job import Job
from tsctl.daemon.workers.engine import Exit
from tsctl.daemon.workers.local import LocalWorker
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader


def play(lines: list[str]) -> list[str]:
    """Let it happen again, and return the lines as they would have to be."""
    talk, made = _Talk(lines[0]), [lines[0]]
    for line in lines[1:]:
        if line[:2] in ("> ", "+ "):
            (talk.send if line[0] == ">" else talk.happen)(line[2:])
            talk.clock.settle()
            made += [line, *talk.news()]
    return made


class _Talk(LoneWorker[LocalWorker]):
    def __init__(self, first: str) -> None:
        super().__init__()
        words, _, spec = first.partition(" {")
        rows: dict[str, Any] = {"mode": "continuous", "rows": 4, "batch_size": 4, "response_timeout": 10.0}
        usual = rows if words.endswith("rows") else {"batch_size": 2}
        self.process = PlayedProcess(make_spec(**usual | json.loads("{" + spec)), self.log, self.log, self.clock)
        self.worker = self.process.worker
        self.process.say(wire.Hello(7))
        self._jobs: dict[str, Job] = {}
        self._frames, self._told = FrameReader(), [0, 0, 0]
        self._state = ""
        self.news()

    def send(self, text: str) -> None:
        for each in text.split(" & "):
            number, names = each.split(" ")
            self._jobs |= {job.id: job for job in self.predict(int(number), names)}

    def happen(self, text: str) -> None:
        words, _, more = text.partition(" {")
        verb, *rest = words.split(" ")
        given: dict[str, Any] = json.loads("{" + more) if more else {}
        match verb:
            case "says":
                self.process.write(b"\1\0\0\0x") if rest == ["nonsense"] else self.process.say(_said(rest, given))
            case "pass":
                self.clock.advance(float(rest[0]))
            case "drain":
                self.worker.drain(float(rest[0]) if rest else math.inf)
            case "kill" | "suspend" | "resume":
                getattr(self.worker, verb)()
            case "cancel":
                self.worker.cancel(self._jobs[rest[0]])
            case "limits":
                self.worker.set_limits(int(rest[0]), float(rest[1]))
            case "over":
                self.process.life.over(Exit(**{"code": None} | given))
            case "closes":
                self.process.transport.receive_eof()
            case "life":
                vars(self.process.life).update(given)
            case "window":
                self.process.transport.window = int(rest[0])
            case "takes":
                self.process.transport.take(int(rest[0]))
            case _:
                raise ValueError(text)

    def news(self) -> list[str]:
        """Return what nobody has been told yet."""
        log, life, found = self.log, self.process.life, list[str]()
        for frame in self._frames.feed(bytes(self.process.transport.written)):
            message = wire.decode_for_worker(frame)
            if isinstance(message, wire.Predict):
                found.append(f"* Predict {message.batch}")
            elif not isinstance(message, (wire.Load, wire.Credit)):
                found.append(f"* {message}")
        self.process.transport.written.clear()
        events, outcomes, killed = self._told
        found += [f"= {event}" for event in log.events[events:]]
        for outcome in log.outcomes[outcomes:]:
            reply = "" if outcome.reply is None else f", {outcome.reply.status}: {outcome.reply.body.decode()}"
            again = ", may run again" * outcome.retry
            found.append(f"< {outcome.job.id} {outcome.fate.name}{again}{reply}")
        found += [f"! killed: {why}" for why in life.killed[killed:]]
        self._told = [len(log.events), len(log.outcomes), len(life.killed)]
        worker = self.worker
        state = f"= {worker.state.name}, {len(worker.in_flight)} of {worker.in_flight.capacity} in flight"
        state += ", suspended" * life.suspended
        before, self._state = self._state, state
        return found + [state] * (before != state)


def _said(words: list[str], given: dict[str, Any]) -> wire.ToDaemon:
    match words:
        case ["loaded"]:
            return wire.Loaded(0.1, False, **given)
        case ["done", number, seconds, *bodies]:
            return wire.Done(int(number), [_answer(body) for body in bodies], float(seconds))
        case ["piece", number, row, body]:
            return wire.Chunk(int(number), [(int(row), _answer(body))])
        case ["cut", number, row]:
            return wire.Cut(int(number), [int(row)])
        case ["load", "failed", *why]:
            return wire.LoadFailed(" ".join(why), "", **given)
        case ["gpu", "lost", *why]:
            return wire.GpuLost(" ".join(why))
        case ["round", *rest]:
            return _round(rest)
    raise ValueError(words)


def _round(words: list[str]) -> wire.Round:
    made, place = wire.Round([], []), "pieces"
    for word in words:
        number, _, body = word.partition("=")
        if word in ("more", "done"):
            place = word
        elif place == "pieces":
            made.pieces.append((int(number), _answer(body)))
        elif place == "more":
            made.rows = [*made.rows, int(number)]
            made.more = [*made.more, *[body.encode()] * bool(body)]
        else:
            made.ends.append(wire.Done(int(number), [_answer("ok")], 0.1))
    return made


def _answer(body: str) -> wire.Answer:
    return wire.Answer(200, body.encode())
