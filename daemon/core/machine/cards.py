"""This machine's NVIDIA GPUs, and those of them that the daemon uses; everything here blocks.

NVML tells them, in a short-lived process (handlers/nvml.py): the daemon never holds the driver, and a driver that hangs
costs `TIMEOUT`. Where there is no NVML, or it fails, the kernel module's directory is counted, so that workers meet
the driver's own error. `--gpus N` has the last word: it counts where neither can.

A GPU has one number for people, configurations and handlers: its place among those that the daemon uses, in the order
of `CUDA_VISIBLE_DEVICES`, else of the PCI bus as in nvidia-smi (CUDA's own order puts the fastest first). Its UUID is
what is known inside.
"""

import contextlib
import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-P", "-m", "tsctl.handlers.nvml")
LIBRARY = "libnvidia-ml.so.1"
DIRECTORY = Path("/proc/driver/nvidia/gpus")  # one directory for each GPU that the kernel module has found
START_TIMEOUT = 30.0  # seconds: without nvidia-persistenced, each GPU is started first
TIMEOUT = 3.0  # seconds
LAST_WORDS = 1.0  # seconds that the process may take to die
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU, or a MIG device.

    Attributes:
        index: its number on this machine; that of the whole card, for a part.
        uuid: of NVML; empty where only the kernel module has told.
        name: of the product.
        part: whether it is a part of a card (MIG), which CUDA only finds by its UUID.
        total, free, used: bytes of memory; without those that the driver keeps for itself.
        busy: percent; None where the driver does not tell, as with MIG.
    """

    index: int
    uuid: str = ""
    name: str = ""
    part: bool = False
    total: int = 0
    free: int = 0
    used: int = 0
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class FoundCards:
    """The GPUs of this machine.

    Attributes:
        driver: its version; empty where NVML has not told.
        cuda: the newest CUDA that the driver knows: 13000 for 13.0; 0 where NVML has not told.
        troubles: sentences about GPUs that are not among `cards`, or why NVML does not answer.
    """

    cards: Sequence[Card] = ()
    driver: str = ""
    cuda: int = 0
    troubles: Sequence[str] = field(default_factory=tuple)


def parse_cards(text: str) -> FoundCards:
    """Parse what the process has printed."""
    try:
        document = json.loads(text)
        listed: list[dict[str, Any]] = document["cards"]
        cards = [Card(**each) for each in listed if "trouble" not in each]
        troubles = [f"GPU {each['index']} is not used: {each['trouble']}" for each in listed if "trouble" in each]
        if document["trouble"]:
            troubles.append(f"NVML does not answer: {document['trouble']}")
        return FoundCards(cards, document["driver"], document["cuda"], troubles)
    except (ValueError, KeyError, TypeError):
        return FoundCards(troubles=["NVML does not answer: its process has failed"])


def ask_cards(timeout: float = TIMEOUT, program: Sequence[str] = PROGRAM) -> FoundCards:
    """Ask NVML, in a process of its own."""
    try:
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError as error:
        return FoundCards(troubles=[f"NVML does not answer: no process: {error.strerror}"])
    try:
        return parse_cards(process.communicate(timeout=timeout)[0])
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS)  # else it hangs in its driver, and stays
        if process.stdout is not None:
            process.stdout.close()
        return FoundCards(troubles=[f"NVML does not answer: its driver has hung for {timeout:g} s"])


def has_nvml() -> bool:
    """Return whether this machine has the library. Loading it does not touch the driver."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def find_cards(
    ask: Callable[[], FoundCards], there: Callable[[], bool] = has_nvml, directory: Path = DIRECTORY
) -> FoundCards:
    """Find this machine's GPUs.

    Args:
        ask: asks NVML.
        there: whether there is NVML to be asked.
        directory: of the kernel module.
    """
    found = ask() if there() else FoundCards()
    if found.driver:
        return found
    try:
        count = len(list(directory.iterdir()))
    except OSError:
        count = 0
    return FoundCards([Card(index=index) for index in range(count)], troubles=found.troubles)


def visible_cards(environment: Mapping[str, str], cards: Sequence[Card]) -> list[Card]:
    """Return the GPUs that `CUDA_VISIBLE_DEVICES` leaves, in its order.

    As CUDA reads it (CUDA C Programming Guide, "CUDA Environment Variables"): the first entry that is no device ends
    the list, UUIDs may be shortened while they are unique, and a device named twice hides all. A number of a card with
    MIG stands for all its parts here; for CUDA it is the first of them.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return list(cards)
    chosen: list[Card] = []
    for entry in visible.split(","):
        named = list(_named(entry.strip(), cards))
        if not named:
            break
        chosen += named
    return chosen if len(set(chosen)) == len(chosen) else []


def _named(word: str, cards: Sequence[Card]) -> Iterator[Card]:
    if word.isdecimal():
        yield from (card for card in cards if card.index == int(word))
    elif word.startswith(("GPU-", "MIG-")):
        found = [card for card in cards if card.uuid.startswith(word)]
        if len(found) == 1:
            yield found[0]
        elif cards and not any(card.uuid for card in cards):
            yield Card(index=-1, uuid=word)  # without NVML, nobody knows: CUDA will say


def used_cards(environment: Mapping[str, str], cards: Sequence[Card], count: int | None = None) -> list[Card]:
    """Return the GPUs that the daemon uses.

    Args:
        cards: of this machine.
        count: the operator's own word for their number, which may be more than were found; None for all.
    """
    visible = visible_cards(environment, cards)
    if count is None or count <= len(visible):
        return visible[:count]
    words = environment.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count)))).split(",")
    named = [word.strip() for word in words[:count]]
    return [Card(index=int(word)) if word.isdecimal() else Card(index=-1, uuid=word) for word in named]


def missing_cards(environment: Mapping[str, str], cards: Sequence[Card], count: int | None) -> list[str]:
    """Return a sentence if `count` is more than the GPUs that were found; arguments as for `used_cards`."""
    visible = len(visible_cards(environment, cards))
    if count is None or count <= visible:
        return []
    found = f"{visible} were found" if visible else "none was found"
    return [
        f"`gpus` (TorchServe's `number_of_gpu`) is {count}, and {found}: a worker whose torch cannot use its GPU does"
        " not load; without the setting, those that are found are used"
    ]


def names_for_cuda(cards: Sequence[Card], found: Sequence[Card]) -> list[str]:
    """Return the name of each used card in `CUDA_VISIBLE_DEVICES`.

    Numbers, with `CUDA_DEVICE_ORDER=PCI_BUS_ID`, because some libraries cannot read UUIDs there. UUIDs beside parts of
    cards, and cards that are lost, which NVML and CUDA count differently.

    Args:
        found: all cards of this machine.
    """
    counted = not any(card.part for card in found) and [card.index for card in found] == list(range(len(found)))
    return [card.uuid if card.uuid and (card.index < 0 or not counted) else str(card.index) for card in cards]
