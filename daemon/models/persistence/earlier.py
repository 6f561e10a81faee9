"""A model before its latest change, which `tsctl rollback` brings back.

    registered, replaced, set, another default or route, unregistered    a change: the state before is kept
    scaled, described by a worker, restored                              none: the versions and settings stay
    what a service does while it has a reservation of the model          one change, which begins with its first step

The snapshot holds the state, so that it survives restarts and upgrades; and its unpacked archives are kept as long as
the model is registered, because the archive's file may have been overwritten since. One state is kept for each model.
Commands with one token in common, such as those of `tsctl apply`, are one change.
"""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from tsctl.daemon.models.persistence.snapshot import EarlierModel, Snapshot, SnapshotEntry
from tsctl.daemon.models.settings import Overrides

MOST_TOKEN = 100  # characters
MOST = 1000  # states; the oldest go first
CHANGE: ContextVar[str] = ContextVar("CHANGE", default="")  # the token of the command that is being executed
_WORKERS = ("workers", "max_workers", "fallback_workers", "fallback_batch_size")


@contextmanager
def one_change(token: str) -> Iterator[None]:
    """Name the change that the block is a part of; a longer token is cut."""
    reset = CHANGE.set(token[:MOST_TOKEN])
    try:
        yield
    finally:
        CHANGE.reset(reset)


def earlier_after(
    saved: Snapshot, now: Snapshot, *, change: str, time: float, reserved: Set[str] = frozenset()
) -> tuple[EarlierModel, ...]:
    """Return the states to keep, once the registered versions and the routes are these.

    Args:
        saved: the snapshot before.
        now: the versions and routes now.
        change: the token of the change; empty for a change of its own.
        time: now, seconds since the epoch.
        reserved: the models that were reserved in the snapshot before.
    """
    before, after = _by_name(saved.models), _by_name(now.models)
    kept = {each.name: each for each in saved.earlier}
    for name, versions in before.items():
        route, others = saved.routes.get(name), after.get(name, [])
        same = versions == others or _compared(versions) == _compared(others)  # most are the very same objects
        if (same and route == now.routes.get(name)) or name in reserved:
            continue
        known = kept.pop(name, None)
        if known is None or not change or known.change != change:
            known = EarlierModel(
                name=name, change=change, time=time, versions=tuple(map(_without_learned, versions)), route=route
            )
        kept[name] = known
    return tuple(list(kept.values())[-MOST:])


def _by_name(entries: Sequence[SnapshotEntry]) -> dict[str, list[SnapshotEntry]]:
    found: dict[str, list[SnapshotEntry]] = {}
    for entry in entries:
        found.setdefault(entry.name, []).append(entry)
    return found


def _compared(entries: Sequence[SnapshotEntry]) -> dict[str, SnapshotEntry]:
    return {entry.version: _without_workers(entry) for entry in entries}


def _without_learned(entry: SnapshotEntry) -> SnapshotEntry:
    """Return the entry without the members that come from its workers: new workers tell them again."""
    return replace(entry, declared=None, notes=())


def _without_workers(entry: SnapshotEntry) -> SnapshotEntry:
    """Return the entry without the members whose change is none."""
    asked = Overrides(**{name: value for name, value in entry.request.overrides.said.items() if name not in _WORKERS})
    request = replace(entry.request, overrides=asked, synchronous=True, sha256="", model_version=None)
    return replace(_without_learned(entry), request=request, archive=None, chosen=False, listed=False)
