"""The invariants at the end: after the faults have ceased and the daemon had time, and after the daemon has stopped."""

import functools
import sys
from typing import TYPE_CHECKING

from tests.lab.simulation.ledger import Served
from tests.lab.simulation.world import counted
from tsctl.daemon.extensions.sequences.service import sequences_of
from tsctl.daemon.models.persistence.snapshot import decode_snapshot
from tsctl.daemon.workers.slot import RESTART_LIMIT, SlotState

if TYPE_CHECKING:
    from tests.lab.simulation.world import World

_HELD = 4  # references to an ended job: the world's list, its entry, and two here


def check_healed(world: "World") -> None:
    """Check that each version has its wanted workers, and all requests were answered."""
    for served in world.served:
        pool = served.model.pool
        if served.open:
            world.broken("everybody is answered in the end", served=served, open=list(served.open.values()))
        for slot in pool.slots:
            given_up = slot.state is SlotState.GAVE_UP and (
                len(slot.failures) >= RESTART_LIMIT or "load_fails" in world.plan.faults
            )
            if slot.state is not SlotState.UP and not given_up:
                world.broken("there are as many workers as are wanted", served=served, slot=slot, pool=pool)
        told = [(worker.process.script.batch_size, worker.process.script.threads) for worker in served.workers]
        if any(each != (served.model.settings.batch_size, pool.threads) for each in told):
            world.broken("workers know the batch size and their threads", served=served, told=told)
        if pool.unstarted or pool._leaving:
            world.broken("nothing is left of workers that have gone", pool=pool)
        leased = [
            worker
            for worker in served.workers
            if not worker.in_flight and worker.in_flight.leased != worker.process.script.reader.kept
        ]
        if leased:
            world.broken("no memory is left to whoever has ended", workers=leased)
    if all(kind != "disk" for _, kind in world.plan.events):
        _check_disk(world)


def _check_disk(world: "World") -> None:
    entries = decode_snapshot(world.disk).models if world.disk is not None else ()
    saved = sorted((entry.name, entry.version, entry.default) for entry in entries)
    now = sorted((model.name, model.version, world.registry.is_default(model)) for model in world.registry)
    if saved != now:
        world.broken("what is registered is on the disk", saved=saved, registered=now)


def check_stopped(world: "World") -> None:
    """Check that nothing is left."""
    for served in world.served:
        _check_nothing_left(world, served)
        _check_counts(world, served)
    for process in world.processes:
        if process.users:
            world.broken("a template is told of the end of each worker", process=process)
        if not process.stopped:
            world.broken("no process is left", process=process)
    if any(world.placement._load.values()):
        world.broken("devices are given back", placement=world.placement)
    if world.loop.armed:
        world.broken("no timer is left", armed=[_name(call.call) for call in world.loop.armed])
    if world.entries:
        world.broken("everybody is answered in the end", open=list(world.entries.values()))
    if world.memory.used:
        world.broken("no memory is left to whoever has ended", memory=world.memory)
    _check_all_counts(world)
    for job in world.jobs:
        if sys.getrefcount(job) > _HELD:
            world.broken("nothing holds a request that has ended", job=job, references=sys.getrefcount(job) - _HELD)
            return


def _check_nothing_left(world: "World", served: Served) -> None:
    model = served.model
    if served.open:
        world.broken("everybody is answered in the end", served=served, open=list(served.open.values()))
    if len(model.queue) or model.queue.bytes or model.dispatcher.running or model.waiting or model.running:
        world.broken("the counts return to zero", queue=model.queue, dispatcher=model.dispatcher)
    if not model.pool.empty or model.pool.idle or model.pool.granting or served.workers:
        world.broken("the pool is empty", pool=model.pool, workers=list(served.workers))
    if model.dispatcher._left or len(model.dispatcher.expiry.sent) or len(model.queue.deadlines):
        world.broken("nothing holds a request that has ended", dispatcher=model.dispatcher)
    callers = model.traffic.callers
    if callers.present or callers.strangers or callers.open:
        world.broken("no connection is counted that has closed", callers=callers)
    sequences = sequences_of(model)
    if sequences is not None and (
        len(sequences) or sequences._of or any(sequences._owned.values()) or sequences._homes
    ):
        world.broken("no sequence is left to workers that have gone", sequences=sequences, of=sequences._of)
    if model.listeners:
        world.broken("nobody waits for a version that has gone", listeners=len(model.listeners))


def _check_counts(world: "World", served: Served) -> None:
    metrics, counts = served.model.metrics, served.counts
    said = {"answers": sum(metrics.fine.counts), "jobs": int(metrics.batch_size.sum)}
    # A version and its replacement share metrics while the old one finishes.
    together = [each for each in world.served if each.model.metrics.ok is metrics.ok]
    expected = {name: sum(each.counts[name] for each in together) for name in said}
    if said != expected:
        world.broken("the metrics say what was", served=served, said=said, expected=expected)
    expired = served.model.dispatcher.expired
    if (expired["queue"], expired["worker"]) != (counts["expired in the queue"], counts["expired with a worker"]):
        world.broken("the metrics say what was", served=served, expired=expired, counts=counts)


def _check_all_counts(world: "World") -> None:
    """Check each version's counts over all its registrations."""
    for metrics in world.metrics.counted:
        same = [served for served in world.served if served.key == (metrics.name, metrics.version)]
        expected = {name: sum(served.counts[name] for served in same) for name in counted(metrics)}
        if counted(metrics) != expected:
            world.broken("a version counts on where it was registered before", said=counted(metrics), expected=expected)


def _name(call: object) -> str:
    while isinstance(call, functools.partial):
        call = call.args[0] if call.args else call.func
    return f"{getattr(call, '__qualname__', call)} of {getattr(call, '__self__', '?')!r}"
