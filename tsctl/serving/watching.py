"""Which files of a target are watched, and when a change is due.

    STEADY ──a file differs──▶ CHANGED ──nothing differs any more for SETTLED──▶ due: replace, STEADY again
                                 │  ▲
                                 └──┘ a file differs again

Editors save in several steps: a file may be half written, or gone for a moment.
"""

import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.targets import ServeTarget, local_files
from tsctl.errors import CliError

POLL = 0.1  # seconds between two looks; a look at ten files takes 20 µs
SETTLED = 0.1  # seconds without a further change
GONE = 1.0  # seconds without a further change while a file is missing: an editor is about to write it
_BESIDE = ("model-config.yaml", "index_to_name.json", "config.json", "preprocessor_config.json")


class Stamp(NamedTuple):
    """The values that change when a file is saved: bytes, nanoseconds, inode."""

    size: int
    modified: int
    inode: int


Stamps = Mapping[Path, Stamp | None]  # None: there is no such file


def watched_files(target: ServeTarget) -> list[Path]:
    """Return the files of which a change counts; empty if the target has none here.

    For a Python file, those that it imports from its folder; for each target, its model and its configuration. Of a
    directory the files in it, but not those in the directories below.
    """
    path = target.path
    if path is None:
        return []
    if target.kind == "module":
        path = path.joinpath(*target.handler.partition(":")[0].split(".")).with_suffix(".py")
        return local_files(path) if path.is_file() else []
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    starts = [path, *(path.with_name(name) for name in (target.model_file, target.serialized_file) if name is not None)]
    files = [file for start in starts for file in (local_files(start) if start.suffix == ".py" else [start])]
    beside = [path.with_name(name) for name in _BESIDE] if target.inferred else []
    return list(dict.fromkeys([*files, *beside]))


def stamps_of(files: Sequence[Path]) -> Stamps:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> Stamp | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


class ChangeDetector:
    """Decides when changed files are due; times are seconds on any clock.

    Args:
        served: the stamps of what is being served.
    """

    def __init__(self, served: Stamps) -> None:
        self._served = served
        self._last = served
        self._since = 0.0

    def served(self, stamps: Stamps) -> None:
        """Note that files with these stamps are served, or were refused: they are not tried again."""
        self._served = self._last = stamps

    def due(self, stamps: Stamps, now: float) -> bool:
        """Return whether the files differ from those served, and have not changed for long enough."""
        if stamps != self._last:
            self._last, self._since = stamps, now
        if stamps == self._served:
            return False
        gone = any(stamp is None and self._served.get(file) is not None for file, stamp in stamps.items())
        return now >= self._since + (GONE if gone else SETTLED)


class Access(NamedTuple):
    """Mode, owner and group of a file or directory, as in `os.stat`."""

    path: Path
    mode: int
    uid: int
    gid: int


def writable_by_others(entries: Sequence[Access], me: int, own_groups: frozenset[int]) -> list[Access]:
    """Return the entries that another user could change.

    A group of which the user is the only member does not count. In a directory with the sticky bit others cannot
    replace files; that is enough for a directory further up.

    Args:
        entries: a file or directory each, those that hold watched files first.
        own_groups: the groups that have no other member.
    """
    found = []
    for entry in entries:
        foreign = entry.uid not in (me, 0)
        group = entry.mode & stat.S_IWGRP and entry.gid not in own_groups
        if foreign or group or entry.mode & stat.S_IWOTH:
            found.append(entry)
    return found


def accesses(files: Sequence[Path]) -> Iterator[Access]:
    """Yield the files, their directories and, without those that are sticky, the directories above them."""
    present = [file for file in files if file.exists()]
    folders = dict.fromkeys(file.parent.resolve() for file in present)
    above = dict.fromkeys(parent for folder in folders for parent in folder.parents if parent not in folders)
    for path in (*present, *folders):
        yield _access(path)
    for path in above:
        entry = _access(path)
        if not entry.mode & stat.S_ISVTX:
            yield entry


def _access(path: Path) -> Access:
    status = path.stat()
    return Access(path, status.st_mode, status.st_uid, status.st_gid)


def own_groups() -> frozenset[int]:
    """Return the user's own group, if it has no other member: what `useradd` makes, with the umask 002."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return frozenset()
    alone = group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return frozenset({user.pw_gid}) if alone else frozenset()


def refusal(entries: Sequence[Access], me: int) -> tuple[str, str]:
    """Return why files are not watched, and the remedy for all of them."""
    foreign = next((entry for entry in entries if entry.uid not in (me, 0)), None)
    if foreign is not None:
        return f"`{foreign.path}` belongs to another user, who could change the code that runs", "leave out `--watch`"
    shared = next((entry for entry in entries if entry.mode & stat.S_ISVTX), None)
    if shared is not None:  # everybody's by intention, as `/tmp`: its mode must stay
        message = f"everybody may put files into `{shared.path}`, and so change the code that runs"
        return message, "move the files into a directory of your own, or leave out `--watch`"
    names = " ".join(shlex.quote(str(entry.path)) for entry in entries)
    return f"others may write `{entries[0].path}`, and so change the code that runs", f"`chmod go-w {names}`"


def check_access(target: ServeTarget) -> None:
    """Refuse a target whose files others may write, or replace, or put modules beside.

    Raises:
        CliError: with the command that mends it; or the target has no files here.
    """
    files = watched_files(target)
    if not any(file.exists() for file in files):
        raise CliError(f"`{target.handler or target.url}` has no file here to watch", "leave out `--watch`")
    found = writable_by_others(list(accesses(files)), os.getuid(), own_groups())
    if found:
        message, remedy = refusal(found, os.getuid())
        raise CliError(message, remedy)
