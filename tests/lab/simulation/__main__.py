"""Run the daemon under faults drawn from seeds, on a virtual clock.

    python -m tests.lab simulate-faults, or python -m tests.lab.simulation [--seeds 1000] [--first 1] [--seed N]

A run is a period of arbitrary events, possibly time to recover, and the stop. Seeds up to 100 000 run whole batches,
later ones all modes (plan.py).
"""

import asyncio
import logging
import math
import sys

from tests.lab.harness import seeds
from tests.lab.simulation.clients import Clients
from tests.lab.simulation.invariants import check, check_healed, check_stopped
from tests.lab.simulation.operators import Operators
from tests.lab.simulation.plan import draw
from tests.lab.simulation.world import Failure, World
from tsctl.daemon.lifecycle.shutdown import stop_models

RECOVERY = 90.0  # seconds: covers the longest back-off, a hanging load, a process that does not die
# If every batch hangs, each worker costs a pause of five seconds: two for each of 150 requests, plus loads.
LONGEST_RECOVERY = 3600.0  # seconds
POISON = 6  # requests that end workers, one after the other
PAUSE = 15.0  # seconds: two ending workers, the longest pauses before their successors, and their loads
LONGEST_STOP = 120.0  # seconds
MOST_STEPS = 200_000  # in one run; thousands are usual
KEPT = 120  # last events of a report


class Endless(Exception):
    """The loop never rests."""


def run(seed: int, story: list[str] | None = None) -> Failure | None:
    """Run a seed; return the first broken invariant, or None."""
    world = World(draw(seed), story)
    asyncio._set_running_loop(world.loop)
    logging.disable()
    try:
        _run(world)
    except Endless:
        world.broken("the loop finds rest", ready=world.loop)
    finally:
        if world.failure is not None:
            world.close()
        asyncio._set_running_loop(None)
        logging.disable(logging.NOTSET)
    return world.failure


def explain(seed: int) -> str:
    """Run a seed again; return its report: the plan, the last events, the failure, and the command to repeat it."""
    story, plan = list[str](), draw(seed)
    failure = run(seed, story)
    drawn = ", ".join(f"{name} {chance:g}" for name, chance in plan.faults.items()) or "none"
    lines = [
        f"seed {plan.seed}: {len(plan.models)} models, {sum(size for _, size in plan.bursts)} requests and "
        f"{len(plan.events)} events in {plan.span:g} s; {'then it heals' if plan.heals else 'then it is stopped'}",
        f"    a batch of n takes {plan.service[0]:g} + {plan.service[1]:g} n s, a load {plan.load_time:g} s; "
        f"grace {plan.grace:g} s{f', hurried after {plan.hurry:g} s' if plan.hurry else ''}",
        f"    faults of workers: {drawn}",
        f"    of requests: low {plan.low:g}, solo {plan.solo:g}, with a deadline {plan.timed:g}, patient "
        f"{plan.patient:g}, poison {plan.poison:g}",
        "",
    ]
    if len(story) > KEPT:
        lines.append(f"            … {len(story) - KEPT} lines before")
    lines += story[-KEPT:]
    if failure is not None:
        lines += ["", str(failure), f"again: python -m tests.lab.simulation --seed {plan.seed}"]
    return "\n".join(lines)


def _run(world: World) -> None:
    clients = Clients(world)
    operators = Operators(world, clients)
    _let_pass(world, world.plan.span)
    if world.plan.heals:
        world.healed = True
        world.note("from now on nothing goes wrong")
        _let_pass(world, RECOVERY)
        until = world.loop.now() + LONGEST_RECOVERY
        while world.failure is None and any(served.open for served in world.served) and world.loop.next < until:
            _let_pass(world, RECOVERY)
        _let_pass(world, PAUSE)  # a worker may have ended with the last requests
        if operators.commands:
            world.broken("a command ends", commands=operators.commands)
        if world.failure is None:
            check_healed(world)
            _try_each(world, clients)
            _try_beside_poison(world, clients)
    if world.failure is not None:
        return
    world.note("the daemon is stopped")
    second_signal = asyncio.sleep(world.plan.hurry) if world.plan.hurry else asyncio.Event().wait()
    stopped = world.loop.create_task(stop_models(world.registrar, world.plan.grace, second_signal))
    _let_pass(world, LONGEST_STOP, stopped)
    if world.failure is None and not stopped.done():
        world.broken("a stop ends", grace=world.plan.grace)
    elif stopped.done() and stopped.exception() is not None:
        world.broken("no exception escapes", error=stopped.exception())
    clients.close()
    world.healed = True
    _let_pass(world, LONGEST_STOP)
    if operators.commands:
        world.broken("a command ends", commands=operators.commands)
    for served in world.served:
        served.model.reports.close()  # a process that ended last of all may have given requests back, to be refused
    if world.failure is None:
        check_stopped(world)


def _try_each(world: World, clients: Clients) -> None:
    """Check that every version with workers answers."""
    tried = [
        entry
        for served in world.served
        if not served.model.stopping and served.model.pool.ready
        for entry in [clients.ask(served)]
        if entry is not None
    ]
    _let_pass(world, 10.0)
    for entry in tried:
        reply, timeout = entry.reply, entry.served.model.settings.response_timeout
        if reply is None or (reply.status not in (200, 504) and sum(world.plan.service) * 1.2 < timeout):
            world.broken("a version with workers answers", entry=entry, reply=reply)


def _try_beside_poison(world: World, clients: Clients) -> None:
    """Check that a version still answers after six requests that end workers."""
    tried = [
        served
        for served in world.served
        if not served.model.stopping
        and served.model.pool.ready
        and sum(world.plan.service) * 1.2 < served.model.settings.response_timeout
        and world.plan.load_time * 1.6 < served.model.settings.startup_timeout
    ]
    if not tried or world.failure is not None:
        return
    for _ in range(POISON):
        for served in tried:
            clients.ask(served, poison=True)
        _let_pass(world, PAUSE)
    entries = [(served, clients.ask(served)) for served in tried]
    _let_pass(world, PAUSE)
    for served, entry in entries:
        if entry is None and served.sequences is not None and served.sequences.full:
            continue
        if entry is None or entry.reply is None or entry.reply.status not in (200, 504):
            world.broken("healthy requests are answered after those that end workers", served=served, entry=entry,
                         reply=None if entry is None else entry.reply)  # fmt: skip


def _let_pass(world: World, seconds: float, until: "asyncio.Task[None] | None" = None) -> None:
    """Advance the time, or until a task is done; check the invariants whenever the loop is at rest."""
    loop = world.loop
    end = loop.now() + seconds
    for _ in range(MOST_STEPS):
        if loop.at_rest:
            for served in world.served:
                check(world, served)
            if loop.next > end or loop.next == math.inf:
                return
        if world.failure is not None or (until is not None and until.done()):
            return
        loop.step()
    raise Endless


def main(arguments: list[str]) -> int:
    return seeds.main("tests.lab.simulation", arguments, run, explain, seeds=1000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
