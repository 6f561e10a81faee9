"""The outcomes of trials, kept in files of one directory: one for each archive, machine and way to run it.

The daemon names the directory in the environment (`OPTIMIZE_TRIALS_DIR`): `trials` in its state directory. Whoever
loads a model locks the file; others that load the same one meanwhile wait, and find the outcomes.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.optimize.int8.calibration import Scales

VARIABLE = "OPTIMIZE_TRIALS_DIR"
FORMAT = 1  # raised when trials are made differently, so that all are made again


class KeptTrial(msgspec.Struct):
    """The contents of a file: `facts` for people, and to be compared.

    Attributes:
        scales: of `int8`, if that was tried.
        timed: defaults have been timed, too, not only checked for drift.
    """

    facts: dict[str, Any]
    outcomes: list[wire.Optimized]
    scales: Scales | None = None
    timed: bool = True


class TrialRecord:
    """One file, locked.

    Attributes:
        outcomes: of the trial with these facts; None if there was none.
        scales: of `int8`, as that trial has calibrated them; None without.
        timed: as in the file; False if there was none.
    """

    def __init__(self, facts: Mapping[str, Any], file: IO[bytes] | None) -> None:
        self._facts = dict(facts)
        self._file = file
        self.outcomes: list[wire.Optimized] | None = None
        self.scales: Scales | None = None
        self.timed = False
        if file is not None:
            with suppress(msgspec.MsgspecError, OSError, UnicodeDecodeError):  # damaged: as if there were none
                verdict = msgspec.json.decode(file.read(), type=KeptTrial)
                if verdict.facts == self._facts:
                    self.outcomes, self.scales, self.timed = verdict.outcomes, verdict.scales, verdict.timed

    def keep(self, outcomes: list[wire.Optimized], scales: Scales | None = None, *, timed: bool = True) -> None:
        """Write the outcomes; a disk that is full keeps none."""
        if self._file is None:
            return
        with suppress(OSError):
            self._file.truncate(0)
            kept = KeptTrial(self._facts, outcomes, scales, timed)
            self._file.write(msgspec.json.format(msgspec.json.encode(kept)))
            self._file.flush()


@contextmanager
def entry_of(facts: Mapping[str, Any]) -> Iterator[TrialRecord]:
    """Lock the entry for these facts, JSON's kinds of values only; without a directory nothing is kept."""
    plain = msgspec.json.decode(msgspec.json.encode({"format": FORMAT, **facts}))  # as they are read again
    file = _open(plain)
    if file is None:
        yield TrialRecord(plain, None)
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield TrialRecord(plain, file)


def _open(facts: dict[str, Any]) -> IO[bytes] | None:
    directory = os.environ.get(VARIABLE)
    if not directory:
        return None
    name = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:32]
    try:
        Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        file = Path(directory, f"{name}.json")
        file.touch(mode=0o600)
        return file.open("a+b")
    except OSError:
        return None
