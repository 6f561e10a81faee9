"""NVIDIA's management library: the cards of this machine, their memory, how busy they are.

`python -P -m tsctl.handlers.nvml` prints them as JSON. The daemon asks through such a process: it never holds the
driver itself, and a driver that hangs is left behind with the process. A worker, which holds the driver anyway, calls
`free_memory`.

The library counts what this process may open (containers, cgroups), in the order of the PCI bus, as CUDA does with
`CUDA_DEVICE_ORDER=PCI_BUS_ID`. With MIG, the parts of a card are listed in its place: to CUDA, such a card is none.

By ctypes rather than the package nvidia-ml-py: the names of these dozen functions (`_v2`) freeze them, and the package,
7,000 lines, would be installed on every machine without a GPU, too. Functions and structures are those of nvml.h.
"""

import ctypes
import json
from collections.abc import Iterator, Sequence
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_NOT_SUPPORTED, _NOT_FOUND, _NO_FUNCTION = 3, 6, 13
_LONGEST = 96  # bytes of a name or a UUID


class NvmlError(Exception):
    """The library, or one of its calls, failed; the message is the library's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _DriverMemory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _DriverMemory2(ctypes.Structure):
    """nvmlMemory_v2_t: what the driver keeps for itself does not count as used."""

    _fields_ = [
        ("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong),
    ]  # fmt: skip


class _Utilization(ctypes.Structure):
    """nvmlUtilization_t: percent of the last sample period."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """The library, initialized.

    Args:
        library: in place of this machine's.

    Raises:
        OSError: there is no such library.
        NvmlError: the driver refuses.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = ctypes.CDLL(LIBRARY) if library is None else library
        self._call("nvmlInit_v2")

    def document(self) -> dict[str, Any]:
        """Return what the program prints: `driver`, `cuda`, and `cards` (`_card`)."""
        cuda = ctypes.c_int()
        self._call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
        driver = self._text("nvmlSystemGetDriverVersion")
        return {"driver": driver, "cuda": cuda.value, "cards": list(self._cards()), "trouble": ""}

    def free(self, name: str) -> int:
        """Return the free bytes of a card, by its number or its UUID."""
        handle = ctypes.c_void_p()
        if name.isdigit():
            self._call("nvmlDeviceGetHandleByIndex_v2", int(name), ctypes.byref(handle))
        else:
            self._call("nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(handle))
        return int(self._memory(handle).free)

    def _cards(self) -> Iterator[dict[str, Any]]:
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            try:
                self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
                parts = self._parts(handle)
                for each in [handle] if parts is None else parts:
                    yield self._card(index, each, part=parts is not None)
            except NvmlError as error:  # lost, or not for this user: the others serve
                yield {"index": index, "trouble": str(error)}

    def _parts(self, handle: ctypes.c_void_p) -> list[ctypes.c_void_p] | None:
        """Return the MIG devices of a card; None of one that is whole."""
        now, later, most = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
        try:
            self._call("nvmlDeviceGetMigMode", handle, ctypes.byref(now), ctypes.byref(later))
        except NvmlError as error:
            if error.code in (_NOT_SUPPORTED, _NO_FUNCTION):
                return None
            raise
        if not now.value:
            return None
        self._call("nvmlDeviceGetMaxMigDeviceCount", handle, ctypes.byref(most))
        parts = []
        for place in range(most.value):
            part = ctypes.c_void_p()
            try:
                self._call("nvmlDeviceGetMigDeviceHandleByIndex", handle, place, ctypes.byref(part))
            except NvmlError as error:
                if error.code != _NOT_FOUND:
                    raise
            else:
                parts.append(part)
        if not parts:
            raise NvmlError(_NOT_FOUND, "MIG is on, and it has no parts: make some, or `nvidia-smi -mig 0`")
        return parts

    def _card(self, index: int, handle: ctypes.c_void_p, *, part: bool) -> dict[str, Any]:
        """Return a card, or a part of one: its number, UUID, name, bytes, and percent busy (None where not told)."""
        memory, used = self._memory(handle), _Utilization()
        busy: int | None = None
        try:
            self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(used))
            busy = used.gpu
        except NvmlError:
            pass  # as with MIG
        return {
            "index": index, "uuid": self._text("nvmlDeviceGetUUID", handle),
            "name": self._text("nvmlDeviceGetName", handle), "part": part,
            "total": memory.total, "free": memory.free, "used": memory.used, "busy": busy,
        }  # fmt: skip

    def _memory(self, handle: ctypes.c_void_p) -> Any:
        if hasattr(self._library, "nvmlDeviceGetMemoryInfo_v2"):
            told = _DriverMemory2(version=ctypes.sizeof(_DriverMemory2) | 2 << 24)
            self._call("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(told))
            return told
        older = _DriverMemory()
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(older))
        return older

    def _text(self, function: str, *arguments: Any) -> str:
        buffer = ctypes.create_string_buffer(_LONGEST)
        self._call(function, *arguments, buffer, _LONGEST)
        return buffer.value.decode(errors="replace")

    def _call(self, function: str, *arguments: Any) -> None:
        try:
            called = getattr(self._library, function)
        except AttributeError:
            raise NvmlError(_NO_FUNCTION, f"this driver has no {function}") from None
        code = called(*arguments)
        if code:
            describe = self._library.nvmlErrorString
            describe.restype = ctypes.c_char_p
            raise NvmlError(code, (describe(code) or b"unknown error").decode(errors="replace"))


def free_memory(names: Sequence[str]) -> list[int]:
    """Return the free bytes of cards, by their numbers or UUIDs; empty where they cannot be told."""
    try:
        library = Nvml()
        return [library.free(name) for name in names]
    except (OSError, NvmlError):
        return []


def main() -> None:
    try:
        document = Nvml().document()
    except (OSError, NvmlError) as error:
        document = {"driver": "", "cuda": 0, "cards": [], "trouble": str(error)}
    print(json.dumps(document), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
