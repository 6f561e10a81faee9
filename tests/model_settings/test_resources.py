"""Limits of a worker's resources, as people write them."""

import os
from typing import Any

import pytest

from tests.kit.build import make_config
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.model_settings.resources import Cpus, Size, cpus_text
from tsctl.daemon.models.settings import Overrides, merge, missing_cpus


@pytest.mark.parametrize(
    ("value", "size"), [("4GiB", 4 * 2**30), ("500 MB", 500_000_000), ("1000", 1000), (1000, 1000)]
)
def test_memory_is_a_size_with_its_unit_or_in_bytes(value: Any, size: int) -> None:
    assert Size().read(value) == size


@pytest.mark.parametrize("value", ["", "0", 0, -1, True, 1.5, "much", "-4GiB", [4], 2**63, "9" * 5000])
def test_what_is_no_size_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a size, such as 4GiB"):
        Size().read(value)


@pytest.mark.parametrize(
    ("value", "cpus"),
    [
        ("0", (0,)),
        (3, (3,)),
        ("0-3", (0, 1, 2, 3)),
        ("0-2,8", (0, 1, 2, 8)),
        (" 8, 0-1 ", (0, 1, 8)),
        ([2, 0], (0, 2)),
        ("1,0-1", (0, 1)),
    ],
)
def test_processors_are_numbers_and_ranges(value: Any, cpus: tuple[int, ...]) -> None:
    assert Cpus().read(value) == cpus


@pytest.mark.parametrize("value", ["", "3-0", "all", "-1", "0-", "0,,1", [], ["0"], True, 1.5, "0-1-2", {}])
def test_what_names_no_processors_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="processors by number"):
        Cpus().read(value)


@pytest.mark.parametrize("text", ["", "0", "0-3", "0-3,8", "1,3,5-6"])
def test_processors_are_written_as_they_are_read(text: str) -> None:
    assert cpus_text(Cpus().parse(text) if text else ()) == text


def test_a_processor_that_the_daemon_may_not_use_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 4})

    assert missing_cpus((0, 4)) is None
    assert missing_cpus((0, 2)) == "0-1,4"


def test_the_registration_wins_over_the_archive(tmp_path: Any) -> None:
    config, document = make_config(tmp_path), {"maxMemory": "1GiB", "cpus": "0"}

    ours = merge(Overrides(max_memory=5), document, config)

    assert (ours.max_memory, ours.cpus) == (5, (0,))
    assert (ours.origins["max_memory"], ours.origins["cpus"]) == ("register", "model-config.yaml")
    assert merge(Overrides(), document, config).max_memory == 2**30


def test_processors_that_are_not_there_are_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})

    with pytest.raises(BadRequest, match=r"cpus is 0-3, but the daemon may only use 0-1\."):
        merge(Overrides(cpus=(0, 1, 2, 3)), {}, make_config(tmp_path))


def test_what_the_archive_says_wrongly_names_the_key(tmp_path: Any) -> None:
    with pytest.raises(InvalidModel, match=r"`maxMemory` is `lots`; expected a size, such as 4GiB\."):
        merge(Overrides(), {"maxMemory": "lots"}, make_config(tmp_path))
