"""How many cores there are, and how they are shared."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from daemon.workers import devices
from daemon.workers.devices import quota_of, threads_for, usable_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2.0),
        ("50000 100000\n", 0.5),
        ("150000 100000", 1.5),
        ("max 100000\n", None),
        ("max", None),
        ("", None),
        ("100000", None),
        ("100000 0", None),
        ("many 100000", None),
        ("-1 100000", None),
    ],
)
def test_a_quota_is_a_number_of_cores(text: str, cores: float | None) -> None:
    assert quota_of(text) == cores


@pytest.mark.parametrize(
    ("cores", "workers", "threads"),
    [
        pytest.param(8, 1, 8, id="a lone worker gets all"),
        pytest.param(8, 2, 4, id="two share"),
        pytest.param(8, 3, 2, id="a rest stays unused"),
        pytest.param(8, 8, 1, id="a core each"),
        pytest.param(8, 9, 1, id="nobody gets none"),
        pytest.param(8, 0, 8, id="before there is any worker"),
    ],
)
def test_workers_share_the_cores(cores: int, workers: int, threads: int) -> None:
    assert threads_for(cores, workers) == threads


@pytest.mark.parametrize(
    ("affinity", "quotas", "cores"),
    [
        pytest.param(4, [], 4, id="without cgroups the affinity counts"),
        pytest.param(4, ["max 100000"], 4, id="no limit is no limit"),
        pytest.param(4, ["200000 100000"], 2, id="a quota counts"),
        pytest.param(4, ["300000 100000", "150000 100000"], 1, id="the tightest above counts, rounded down"),
        pytest.param(4, ["50000 100000"], 1, id="there is always one"),
        pytest.param(2, ["800000 100000"], 2, id="a wide quota adds nothing"),
        pytest.param(4, [None, "200000 100000"], 2, id="a group without the file is passed over"),
    ],
)
def test_usable_cores(
    affinity: int, quotas: Sequence[str | None], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / str(index) for index in range(len(quotas))]
    for file, text in zip(files, quotas, strict=True):
        if text is not None:
            file.write_text(text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    monkeypatch.setattr(devices, "_quota_files", lambda: iter(files))

    assert usable_cores() == cores


def test_the_quotas_are_those_of_our_group_and_all_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self: "1:cpu:/old\n0::/slice/unit\n")

    files = [str(file) for file in devices._quota_files()]

    groups = ["slice/unit/", "slice/", ""]
    assert files == [f"/sys/fs/cgroup/{group}cpu.max" for group in groups]


def test_this_machine_has_at_least_one_core() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
