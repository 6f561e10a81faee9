"""Measure settings in turns: a process serves the model under each of them, and the load generator sends requests."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tsctl.errors import CliError
from tsctl.generator import generator
from tsctl.render import LiveProgress, live
from tsctl.terminal.relay import relayed
from tsctl.tuning.choice import TriedSetting, setting_text
from tsctl.tuning.verdict import MeasuredSetting, Turn

SERVE = (sys.executable, "-P", "-m", "tsctl.daemon.tools.tune")
ROUNDS = 3
WARM_UP = 0.5  # of a measurement's time, before each: the collector learns the traffic
LEAST_ANSWERS = 5  # of a client: a slow model is measured for longer
LEAST_TIMES = 20  # of an answer's time, in the open loop: what is on its way at the end counts as not answered
LONGEST = 60.0  # seconds of a measurement that is longer than asked for
MOST_CONNECTIONS = 1000  # of the open loop
BUSY = 0.85  # of the time: a load generator that computes, or waits for a core, this long may be the bottleneck

Ask = Callable[[Any], dict[str, Any]]


class OfferedLoad(NamedTuple):
    """The requests: of `clients` that wait for their answers, or `rate` independent ones a second.

    Attributes:
        way: target and headers, as in the order of the load generator.
        timeout: seconds that an answer may take.
    """

    clients: int | None
    rate: float | None
    way: dict[str, Any]
    body: bytes
    timeout: float

    @property
    def text(self) -> str:
        if self.rate is not None:
            return f"{self.rate:g} independent requests a second"
        return f"{self.clients} clients that wait for their answers" if self.clients != 1 else "1 client that waits"


class Measured(NamedTuple):
    """The settings with their turns, that of now first; and notes on the figures."""

    settings: Sequence[MeasuredSetting]
    notes: Sequence[str]


def measure(
    order: dict[str, Any], load: OfferedLoad, seconds: float, choose: Callable[[int], Sequence[TriedSetting]], name: str
) -> Measured:
    """Measure settings in rounds, there and back, so that what slows the machine meanwhile slows them all.

    Args:
        order: of the process that serves, see daemon/tools/tune/order.py.
        seconds: how long each is measured in a round.
        choose: returns the settings, that of now first, for a number of cores.
        name: the model's, for the display.

    Raises:
        CliError: the model does not load with the setting of now, or cannot answer the request.
    """
    with live() as progress:
        progress.show(f"starting to measure {name}")
        with _serving(progress) as ask:
            found = [MeasuredSetting(setting) for setting in choose(_answer(ask(order))["cores"])]
            now = found[0].setting
            total, done, busiest = ROUNDS * len(found), 0, 0.0
            for number in range(ROUNDS):
                for each in found if number % 2 == 0 else reversed(found):
                    text = f"measuring {name}, round {number + 1} of {ROUNDS}: "
                    progress.show(text + setting_text(each.setting, now), done, total)
                    done += 1
                    if each.failure:
                        continue
                    event = ask(each.setting.document)
                    if event["stage"] == "failed" and each is not found[0]:
                        each.failure = event["message"]
                        continue
                    served = _answer(event)
                    each.threads = served["threads"]
                    busiest = max(busiest, _take_turn(each, ask, served["port"], load, seconds))
    return Measured(found, _notes(found, busiest))


def _notes(found: Sequence[MeasuredSetting], busiest: float) -> list[str]:
    now = found[0].setting
    failed = [each for each in found if each.failure]
    notes = [f"{setting_text(each.setting, now)}: {each.failure.partition(chr(10))[0]}" for each in failed]
    if busiest >= BUSY:
        notes.append(
            f"the load generator used a core, or waited for one, {busiest:.0%} of the time:"
            " the generator, not the model, may be the bottleneck"
        )
    return notes


@contextmanager
def _serving(progress: LiveProgress) -> Iterator[Ask]:
    with relayed(SERVE, progress, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(line: Any) -> dict[str, Any]:
            try:
                stdin.write(json.dumps(line).encode() + b"\n")
                stdin.flush()
            except BrokenPipeError:
                pass  # the process has ended; its last line, or its exit code, gives the reason
            answer = stdout.readline()
            if not answer:
                raise CliError(f"the process that serves the model ended with exit code {process.wait()}")
            event: dict[str, Any] = json.loads(answer)
            return event

        yield ask
        stdin.close()


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    if event["stage"] == "failed":
        raise CliError(event["message"], details=event["details"])
    return event


def _take_turn(each: MeasuredSetting, ask: Ask, port: int, load: OfferedLoad, seconds: float) -> float:
    """Send the load; add a turn, or the failure. Return the share of the time that the load generator was busy."""
    warm = _send(load, port, WARM_UP * seconds)
    if not warm["errors"]:
        times = LEAST_ANSWERS if load.rate is None else LEAST_TIMES
        seconds = max(seconds, min(LONGEST, times * warm["latency"]["p50"]))
        before = ask(None)["cpu"]
        found = _send(load, port, seconds)
        used = ask(None)["cpu"] - before
    else:
        found, used = warm, 0.0
    if found["errors"]:
        each.failure = failure_text(found)
    else:
        latency = found["latency"]
        cpu = max(0.0, used) / max(1, found["requests"])
        each.turns.append(Turn(_rate(found, load), latency["p50"], latency["p99"], cpu))
    return float(found["generatorCpu"] + found["generatorWaited"])


def _rate(found: dict[str, Any], load: OfferedLoad) -> float:
    """Return good answers a second; of an open loop the share that came in time, since the arrivals are random."""
    rate: float = found["requestsPerSecond"]
    return rate if load.rate is None else load.rate * rate * found["seconds"] / max(1, found["requests"])


def _send(load: OfferedLoad, port: int, seconds: float) -> dict[str, Any]:
    order = load.way | {
        "host": "127.0.0.1", "port": port, "connections": load.clients or MOST_CONNECTIONS, "rate": load.rate,
        "seconds": seconds, "timeout": load.timeout,
    }  # fmt: skip
    with generator(order, load.body) as running:
        for event in running.events():
            if event["stage"] == "done":
                return event
            if event["errors"]:  # the setting has failed: each further one would print a traceback
                running.break_off()
    raise CliError("the load generator ended without a result")


def failure_text(found: dict[str, Any]) -> str:
    """Return why requests failed, by the figures of a run."""
    kinds = [f"{count} × status {status}" for status, count in found["statuses"].items() if status[0] != "2"]
    kinds += [f"{count} × {kind}" for kind, count in found["failures"].items()]
    return f"{found['errors']} of {found['requests']} requests failed: {', '.join(kinds)}"
