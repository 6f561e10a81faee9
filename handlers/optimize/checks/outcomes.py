"""The outcomes of checks, kept in files of one directory: one for each archive, machine and way to run it.

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
FORMAT = 4  # raised when checks are made differently, so that all are made again


class KeptOutcomes(msgspec.Struct):
    """The contents of a file: `facts` for people, and to be compared; `scales` of `int8`, if that was wanted."""

    facts: dict[str, Any]
    outcomes: list[wire.Optimized]
    scales: Scales | None = None


class Outcomes:
    """One file, locked.

    Attributes:
        outcomes: of the check with these facts; None if there was none.
        scales: of `int8`, as that check has calibrated them; None without.
    """

    def __init__(self, facts: Mapping[str, Any], file: IO[bytes] | None) -> None:
        self._facts = dict(facts)
        self._file = file
        self.outcomes: list[wire.Optimized] | None = None
        self.scales: Scales | None = None
        if file is not None:
            with suppress(msgspec.MsgspecError, OSError, UnicodeDecodeError):  # damaged: as if there were none
                kept = msgspec.json.decode(file.read(), type=KeptOutcomes)
                if kept.facts == self._facts:
                    self.outcomes, self.scales = kept.outcomes, kept.scales

    def keep(self, outcomes: list[wire.Optimized], scales: Scales | None = None) -> None:
        """Write the outcomes; a disk that is full keeps none."""
        if self._file is None:
            return
        with suppress(OSError):
            self._file.truncate(0)
            kept = KeptOutcomes(self._facts, outcomes, scales)
            self._file.write(msgspec.json.format(msgspec.json.encode(kept)))
            self._file.flush()


@contextmanager
def entry_of(facts: Mapping[str, Any]) -> Iterator[Outcomes]:
    """Lock the entry for these facts, JSON's kinds of values only; without a directory nothing is kept."""
    plain = msgspec.json.decode(msgspec.json.encode({"format": FORMAT, **facts}))  # as they are read again
    file = _open(plain)
    if file is None:
        yield Outcomes(plain, None)
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield Outcomes(plain, file)


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
