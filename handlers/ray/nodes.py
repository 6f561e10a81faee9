"""Decisions on the nodes of a cluster: why a worker has none yet, and which to avoid.

Functions of the facts that Ray gives; without Ray.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tsctl.handlers.ray.messages import ActorOptions

NODE_ID = "ray.io/node-id"  # a label that every node has


class RayNode(NamedTuple):
    """A node of the cluster: its id, a short name for people, whether the head counts it as alive, its resources."""

    id: str
    name: str
    alive: bool
    resources: Mapping[str, float]


def wanted_of(options: ActorOptions) -> dict[str, float]:
    """Return the resources that a worker takes, by Ray's names."""
    wanted = {"CPU": options.num_cpus, "GPU": options.num_gpus, **options.resources}
    return {name: amount for name, amount in wanted.items() if amount}


def why_pending(
    options: ActorOptions, nodes: Sequence[RayNode], free: Mapping[str, float], avoided: Sequence[str]
) -> str:
    """Return why a worker has no node yet, in words.

    Args:
        free: the resources that are free now, of all nodes together.
        avoided: ids of nodes that do not answer.
    """
    alive = [node for node in nodes if node.alive]
    usable = [node for node in alive if node.id not in avoided]
    wanted = wanted_of(options)
    shown = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items()) or "no resources"
    if not alive:
        return "the cluster has no node"
    shunned = f" ({len(alive) - len(usable)} of {len(alive)} nodes do not answer)" if len(usable) < len(alive) else ""
    for name, amount in wanted.items():
        largest = max((node.resources.get(name, 0.0) for node in usable), default=0.0)
        if largest < amount:
            has = f"the most on one node is {largest:g}" if largest else "no node has any"
            return f"it takes {shown}, and {name} is missing: {has}{shunned}"
    if not any(all(node.resources.get(name, 0.0) >= wanted[name] for name in wanted) for node in usable):
        return f"it takes {shown}, and no node has all of that{shunned}"
    for name, amount in wanted.items():
        if free.get(name, 0.0) < amount:
            return f"it takes {shown}, and {name} is in use: {free.get(name, 0.0):g} free{shunned}"
    if options.labels:
        labels = ", ".join(f"{name}={value}" for name, value in options.labels.items())
        return f"it takes {shown} on a node with {labels}: no such node has that free{shunned}"
    return f"it takes {shown}, and no node has all of that free{shunned}"


def selector(options: ActorOptions, avoided: Sequence[str]) -> dict[str, str]:
    """Return Ray's label selector: the model's own labels, and none of the nodes to avoid."""
    if not avoided or NODE_ID in options.labels:
        return dict(options.labels)
    return {**options.labels, NODE_ID: f"!in({','.join(sorted(avoided))})"}
