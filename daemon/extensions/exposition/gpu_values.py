"""Measurements of GPUs, by TorchServe's names."""

from collections.abc import Mapping

from tsctl.daemon.core.machine.cards import MIB, Card


def gpu_values(found: Mapping[int, Card]) -> dict[str, list[tuple[str, float]]]:
    """Return name → each GPU's number and value, without unknown values."""
    cards = [(str(gpu), card) for gpu, card in found.items()]
    return {
        "GPUUtilization": [(gpu, card.busy) for gpu, card in cards if card.busy is not None],
        "GPUMemoryUtilization": [(gpu, 100.0 * card.used / card.total) for gpu, card in cards if card.total],
        "GPUMemoryUsed": [(gpu, card.used / MIB) for gpu, card in cards],
    }
