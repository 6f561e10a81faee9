"""The records of trials: one file for each archive, machine and way to run it, in the directory of outcomes.

A version that is loaded with the same facts has no further trial. An attempt is counted before it begins: one that ends
the daemon is not repeated without end.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tsctl.daemon.extensions.optimizing import VARIABLE, trials_dir
from tsctl.daemon.extensions.optimizing.choice import TrialRow

FORMAT = 3  # raised when trials are made differently, so that all are made again


class TrialFacts(msgspec.Struct, frozen=True):
    """All that the result of a trial hangs on.

    Attributes:
        archive: its SHA-256, or a digest of its files' names, sizes and times.
        python: the interpreter of the version's own environment; empty for the daemon's.
        processor, torch: by name and version.
        onnxruntime: its version; empty where it, or what exports to it, is not installed.
        lossy: optimisations beyond rounding that may be tried → largest drift.
    """

    archive: str
    handler: str
    python: str
    processor: str
    torch: str
    batch_size: int
    threads: int
    lossy: Mapping[str, float]
    onnxruntime: str = ""
    format: int = FORMAT


class TrialRecord(msgspec.Struct, frozen=True):
    """The trials with the same facts.

    Attributes:
        attempts: those that began and were not broken off.
        at: when the last one ended, or began, in seconds since the epoch.
        ended: the last one has a result.
        chosen: the set to serve with, beside the handler's defaults; empty for these alone.
        text: the result, or the last failure, as a sentence.
        rows: of the sets that were tried.
    """

    facts: TrialFacts
    attempts: int = 0
    at: float = 0.0
    ended: bool = False
    chosen: tuple[str, ...] = ()
    text: str = ""
    rows: tuple[TrialRow, ...] = ()


class TrialStore:
    """The records of one directory; a file that is damaged, or a disk that is full, is as if there were none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, facts: TrialFacts) -> TrialRecord:
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            record = msgspec.json.decode(self._path(facts).read_bytes(), type=TrialRecord)
            if record.facts == facts:
                return record
        return TrialRecord(facts)

    def write(self, record: TrialRecord) -> bool:
        """Write a record, and return whether that was possible."""
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, draft = tempfile.mkstemp(dir=self._directory, prefix=".draft-")
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(record)))
            os.replace(draft, self._path(record.facts))
            return True
        return False

    def _path(self, facts: TrialFacts) -> Path:
        digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()
        return self._directory / f"auto-{digest[:32]}.json"


def store_of(state_dir: Path) -> TrialStore:
    """Return the store of a daemon, unless the environment names another directory, as for workers."""
    return TrialStore(Path(os.environ.get(VARIABLE) or trials_dir(state_dir)))
