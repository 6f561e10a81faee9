"""From jobs to frames, and from frames to replies. Values in the arena stay there: their places travel."""

import socket

from daemon.arena import Arena, Stored
from daemon.job import Batch, Outcome, Reply
from handlers import wire


def share(sock: socket.socket, arena: Arena | None) -> None:
    """Give the worker at the other end the arena; it has to be the first that is sent.

    It is sent before there is a worker, so it does not matter how that will be made.
    """
    if arena is not None:
        socket.send_fds(sock, [wire.encode(wire.Share(arena.size))], [arena.descriptor])


def predict_of(batch: Batch) -> tuple[wire.Predict, list[Stored]]:
    """Return the frame, and the values in the arena that the worker will read when it has it."""
    stored: list[wire.Stored] = []
    leases: list[Stored] = []
    rows = []
    for number, job in enumerate(batch.jobs):
        params: list[tuple[str, str, wire.Payload]] = []
        for index, (name, kind, value) in enumerate(job.params):
            if isinstance(value, Stored):
                stored.append(wire.Stored(number, index, value.offset, value.length))
                leases.append(value)
                params.append((name, kind, b""))
            else:
                params.append((name, kind, value))
        rows.append(wire.Row(job.id, list(job.headers), params))
    return wire.Predict(batch.id, rows, stored), leases


def reply_of(answer: wire.Answer) -> Reply:
    return Reply(answer.status, answer.body, answer.phrase, answer.headers, answer.error)


def outcomes_of(batch: Batch, done: wire.Done) -> list[Outcome]:
    """What a batch came back with; there are as many answers as jobs."""
    return [Outcome(job, reply_of(answer)) for job, answer in zip(batch.jobs, done.answers, strict=True)]
