"""Measure settings in turns: a process serves the model under each of them, and the load generator sends requests."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tsctl.errors import CliError
from tsctl.generator import BUSY, MOST_CONNECTIONS, failure_texts, generator
from tsctl.render import LiveProgress, live
from tsctl.terminal.relay import relayed
from tsctl.tuning.choice import TriedSetting, setting_text
from tsctl.tuning.verdict import MeasuredSetting, Turn

SERVE = (sys.executable, "-P", "-m", "tsctl.daemon.tools.tune")
ROUNDS = 3
WARM_UP = 0.5  # of a measurement's time, before each: the collector learns the traffic
# A slow model is measured for longer than asked for: so many times an answer's time, but at most so many seconds.
CLOSED_LOOP = (5, 20.0)
OPEN_LOOP = (20, 60.0)  # a request without an answer at the end counts as not answered

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


def measure(
    order: dict[str, Any], load: OfferedLoad, seconds: float, choose: Callable[[int], Sequence[TriedSetting]], name: str
) -> tuple[list[MeasuredSetting], list[str]]:
    """Measure settings in rounds, there and back, so that what slows the machine meanwhile slows them all.

    Args:
        order: of the process that serves, see daemon/tools/tune.py.
        seconds: how long each is measured in a round, at least.
        choose: returns the settings, that of now first, for a number of cores.
        name: the model's, for the display.

    Returns:
        The settings with their turns, that of now first; and notes on the figures.

    Raises:
        CliError: the model does not load with the setting of now, or cannot answer the request.
    """
    with live() as progress:
        progress.show(f"starting to measure {name}")
        with _serving(progress) as ask:
            started = _answer(ask(order))
            found = [MeasuredSetting(setting) for setting in choose(started["cores"])]
            now, total, done, busiest = found[0].setting, ROUNDS * len(found), 0, 0.0
            for number in range(ROUNDS):
                for each in found if number % 2 == 0 else reversed(found):
                    progress.show(f"measuring {name} with {setting_text(each.setting, now)}", done, total)
                    done += 1
                    if each.failure:
                        continue
                    event = ask(each.setting.document)
                    if event["stage"] == "failed" and each is not found[0]:
                        each.failure = event["message"].partition("\n")[0]
                        continue
                    each.threads = _answer(event)["threads"]
                    busiest = max(busiest, _take_turn(each, ask, started["port"], load, seconds))
    return found, _notes(found, busiest)


def _notes(found: Sequence[MeasuredSetting], busiest: float) -> list[str]:
    now = found[0].setting
    notes = [f"{setting_text(each.setting, now)}: {each.failure}" for each in found if each.failure]
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
                if not stdin.closed:
                    stdin.write(json.dumps(line).encode() + b"\n")
                    stdin.flush()
            except BrokenPipeError:  # the process has ended; its last line, or its exit code, gives the reason
                with suppress(BrokenPipeError):  # what is left of the order is tried once more
                    stdin.close()
            answer = stdout.readline()
            if not answer:
                raise CliError(f"the process that serves the model ended with exit code {process.wait()}")
            event: dict[str, Any] = json.loads(answer)
            return event

        yield ask
        stdin.close()


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    if event["stage"] == "failed":
        message, _, traceback = event["message"].partition("\n\n")
        raise CliError(message, details=traceback)
    return event


def _take_turn(each: MeasuredSetting, ask: Ask, port: int, load: OfferedLoad, seconds: float) -> float:
    """Send the load; add a turn, or the failure. Return the share of the time that the load generator was busy."""
    found, used = _send(load, port, WARM_UP * seconds), 0.0
    if not found["errors"]:
        times, most = CLOSED_LOOP if load.rate is None else OPEN_LOOP
        before = ask(None)["cpu"]
        found = _send(load, port, max(seconds, min(most, times * found["latency"]["p50"])))
        used = ask(None)["cpu"] - before
    if found["errors"]:
        each.failure = f"{found['errors']} of {found['requests']} requests failed: {', '.join(failure_texts(found))}"
        return 0.0
    latency, cpu = found["latency"], max(0.0, used) / max(1, found["requests"])
    each.turns.append(Turn(_rate(found, load), latency["p50"], latency["p99"], cpu, found["seconds"]))
    return float(found["generatorCpu"] + found["generatorWaited"])


def _rate(found: dict[str, Any], load: OfferedLoad) -> float:
    """Return good answers a second.

    Of a closed loop all until the last one: the batch that runs at the end is a fifth of a slow model's. Of an open
    loop the share that came in time, since the arrivals are random.
    """
    if load.rate is None:
        return float(found["requests"] / found["wholeSeconds"])
    return float(load.rate * found["requestsPerSecond"] * found["seconds"] / max(1, found["requests"]))


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
