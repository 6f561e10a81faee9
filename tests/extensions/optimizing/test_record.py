"""What a trial has found is found again with the same facts, and with no others."""

from pathlib import Path

import msgspec
import pytest

from tsctl.daemon.extensions.optimizing import VARIABLE
from tsctl.daemon.extensions.optimizing.choice import TrialRow
from tsctl.daemon.extensions.optimizing.record import TrialFacts, TrialRecord, TrialStore, store_of

FACTS = TrialFacts(
    archive="a" * 64, handler="image_classifier", python="", processor="EPYC (avx2)", torch="2.14.1", batch_size=8,
    threads=2, lossy={"bf16": 0.02},
)  # fmt: skip
ROW = TrialRow(optimize="compile", now=False, gain=1.1, per_second=55.0)
ENDED = TrialRecord(FACTS, attempts=1, at=1e9, ended=True, chosen=("compile",), text="compile: …", rows=(ROW,))


@pytest.fixture
def store(tmp_path: Path) -> TrialStore:
    return TrialStore(tmp_path / "trials")


def test_it_is_read_as_it_was_written(store: TrialStore) -> None:
    assert store.read(FACTS) == TrialRecord(FACTS)

    assert store.write(ENDED)

    assert store.read(FACTS) == ENDED


@pytest.mark.parametrize(
    "change",
    [
        {"archive": "b" * 64}, {"handler": "image_segmenter"}, {"python": "/env/bin/python"},
        {"processor": "Xeon (avx2)"}, {"torch": "2.15.0"}, {"batch_size": 4}, {"threads": 1},
        {"lossy": {"bf16": 0.01}}, {"lossy": {}}, {"format": 1},
    ],
)  # fmt: skip
def test_another_way_to_run_it_has_a_trial_of_its_own(change: dict[str, object], store: TrialStore) -> None:
    store.write(ENDED)

    assert store.read(msgspec.structs.replace(FACTS, **change)).attempts == 0


def test_a_damaged_file_is_as_if_there_were_none(store: TrialStore, tmp_path: Path) -> None:
    store.write(ENDED)
    [file] = (tmp_path / "trials").iterdir()
    file.write_bytes(file.read_bytes()[:-20])

    assert store.read(FACTS) == TrialRecord(FACTS)


def test_the_environment_may_name_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "shared"))
    store_of(tmp_path).write(ENDED)

    assert len(list((tmp_path / "shared").iterdir())) == 1
