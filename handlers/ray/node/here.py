"""Questions of an actor to Ray, which is imported when asked: tests of an actor do without."""

from typing import Any


def node_id() -> str:
    """Return the id of the node that this process runs on."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def has_gpu() -> bool:
    """Return whether this process was given a GPU; it sees no other."""
    import ray

    return bool(ray.get_gpu_ids())


def fetch(reference: Any) -> bytes:
    """Return the object that a reference names. Blocks."""
    import ray

    piece: bytes = ray.get(reference)
    return piece
