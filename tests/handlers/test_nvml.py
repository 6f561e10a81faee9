"""NVML through ctypes, against a library in Python that fills the structures as nvml.h says."""

import ctypes
import json
import subprocess
import sys
from typing import Any

import pytest

from tsctl.handlers import nvml
from tsctl.handlers.nvml import Nvml, NvmlError, free_memory

GIB = 2**30
LOST, MISSING, UNSUPPORTED = 15, 6, 3
ERRORS = {LOST: b"GPU is lost", MISSING: b"Not Found", UNSUPPORTED: b"Not Supported", 9: b"Driver Not Loaded"}


class Library:
    """Cards in memory, called as the C library is.

    Args:
        cards: name → its parts; None of a whole card. A name of `lost` cannot be opened.
        init: the error of the initialization.
        newer: whether it tells what the driver keeps for itself.
    """

    def __init__(self, cards: dict[str, list[str] | None], init: int = 0, *, newer: bool = True) -> None:
        self._cards, self._init = cards, init
        self._names = [*cards, *(part for parts in cards.values() for part in parts or ())]
        self.nvmlErrorString = lambda code: ERRORS[code]
        if newer:
            self.nvmlDeviceGetMemoryInfo_v2 = self._memory

    def nvmlInit_v2(self) -> int:
        return self._init

    def nvmlSystemGetDriverVersion(self, buffer: Any, length: int) -> int:
        return write(buffer, "580.1")

    def nvmlSystemGetCudaDriverVersion_v2(self, version: Any) -> int:
        version._obj.value = 13000
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self._cards)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        if list(self._cards)[index] == "lost":
            return LOST
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:
        handle._obj.value = self._names.index(uuid.decode()) + 1
        return 0

    def nvmlDeviceGetMigMode(self, handle: Any, now: Any, later: Any) -> int:
        parts = self._cards[self._name(handle)]
        now._obj.value = parts is not None
        return UNSUPPORTED if parts is None else 0

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, count: Any) -> int:
        count._obj.value = 7
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, place: int, part: Any) -> int:
        parts = self._cards[self._name(handle)] or []
        if place >= len(parts):
            return MISSING
        part._obj.value = self._names.index(parts[place]) + 1
        return 0

    def nvmlDeviceGetUUID(self, handle: Any, buffer: Any, length: int) -> int:
        return write(buffer, self._name(handle))

    def nvmlDeviceGetName(self, handle: Any, buffer: Any, length: int) -> int:
        return write(buffer, f"NVIDIA {self._name(handle)}")

    def nvmlDeviceGetUtilizationRates(self, handle: Any, used: Any) -> int:
        used._obj.gpu = 37
        return UNSUPPORTED if self._name(handle).startswith("MIG-") else 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        told = memory._obj
        told.total, told.free, told.used = 80 * GIB, 70 * GIB, 10 * GIB
        return 0

    def _memory(self, handle: Any, memory: Any) -> int:
        assert memory._obj.version == 40 | 2 << 24, "sizeof(nvmlMemory_v2_t) is 40"
        memory._obj.reserved = GIB
        self.nvmlDeviceGetMemoryInfo(handle, memory)
        memory._obj.used = 9 * GIB
        return 0

    def _name(self, handle: Any) -> str:
        return self._names[int(handle.value) - 1]


def write(buffer: Any, text: str) -> int:
    buffer.value = text.encode()
    return 0


def test_a_card_is_told_with_its_memory_and_how_busy_it_is() -> None:
    assert Nvml(Library({"GPU-a": None})).document() == {
        "driver": "580.1", "cuda": 13000, "trouble": "",
        "cards": [{
            "index": 0, "uuid": "GPU-a", "name": "NVIDIA GPU-a", "part": False,
            "total": 80 * GIB, "free": 70 * GIB, "used": 9 * GIB, "busy": 37,
        }],
    }  # fmt: skip
    [card] = Nvml(Library({"GPU-a": None}, newer=False)).document()["cards"]
    assert card["used"] == 10 * GIB, "an older driver counts what it keeps for itself"
    sizes = ctypes.sizeof(nvml._DriverMemory2), ctypes.sizeof(nvml._DriverMemory)
    assert sizes == (40, 24), "as in nvml.h"


def test_the_parts_of_a_card_stand_in_its_place() -> None:
    cards = Nvml(Library({"GPU-a": ["MIG-1", "MIG-2"], "GPU-b": None})).document()["cards"]

    assert [(card["index"], card["uuid"], card["part"], card["busy"]) for card in cards] == [
        (0, "MIG-1", True, None), (0, "MIG-2", True, None), (1, "GPU-b", False, 37),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cards", "trouble"),
    [
        pytest.param({"lost": None, "GPU-b": None}, "GPU is lost", id="that is lost"),
        pytest.param({"GPU-a": [], "GPU-b": None}, "MIG is on, and it has no parts", id="that has no parts"),
    ],
)
def test_a_card_that_cannot_be_used_does_not_hide_the_others(cards: dict[str, list[str] | None], trouble: str) -> None:
    told = Nvml(Library(cards)).document()["cards"]

    assert told[0]["index"] == 0
    assert trouble in told[0]["trouble"]
    assert told[1]["uuid"] == "GPU-b"


def test_a_driver_that_refuses_is_quoted() -> None:
    with pytest.raises(NvmlError, match="Driver Not Loaded"):
        Nvml(Library({}, init=9))


@pytest.mark.parametrize("name", ["0", "GPU-a"])
def test_free_memory_is_told_by_number_and_by_uuid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library({"GPU-a": None}))
    assert free_memory([name]) == [70 * GIB]
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert free_memory([name]) == []


def test_the_program_prints_one_document_whatever_the_machine_is() -> None:
    said = subprocess.run(
        [sys.executable, "-P", "-m", "tsctl.handlers.nvml"], capture_output=True, text=True, check=True
    ).stdout

    assert json.loads(said).keys() == {"driver", "cuda", "cards", "trouble"}
