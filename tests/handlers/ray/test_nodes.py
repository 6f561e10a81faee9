"""Why a worker has no node, and which nodes it avoids."""

from collections.abc import Mapping
from typing import Any

import pytest

from tsctl.handlers.ray.messages import ActorOptions
from tsctl.handlers.ray.nodes import NODE_ID, RayNode, selector, why_pending


def node(name: str, alive: bool = True, **resources: float) -> RayNode:
    return RayNode(name, name, alive, resources)


SMALL, LARGE, DEAD = node("small", CPU=2), node("large", CPU=4, GPU=1), node("dead", alive=False, CPU=64, GPU=8)


@pytest.mark.parametrize(
    ("options", "nodes", "free", "avoided", "why"),
    [
        pytest.param({}, [DEAD], {}, [], "the cluster has no node", id="no node"),
        pytest.param(
            {"num_gpus": 2}, [SMALL, LARGE, DEAD], {}, [],
            "it takes 1 CPU, 2 GPU, and GPU is missing: the most on one node is 1", id="too few GPUs on any node",
        ),
        pytest.param(
            {"resources": {"tpu": 1}}, [SMALL], {}, [],
            "it takes 1 CPU, 1 tpu, and tpu is missing: no node has any", id="a resource that no node has",
        ),
        pytest.param(
            {"num_cpus": 2, "resources": {"disk": 1}}, [SMALL, node("disks", CPU=1, disk=1)], {}, [],
            "it takes 2 CPU, 1 disk, and no node has all of that", id="each on another node",
        ),
        pytest.param(
            {}, [SMALL], {"CPU": 0.5}, [], "it takes 1 CPU, and CPU is in use: 0.5 free", id="in use",
        ),
        pytest.param(
            {"num_gpus": 1}, [SMALL, LARGE], {"CPU": 4, "GPU": 1}, ["large"],
            "it takes 1 CPU, 1 GPU, and GPU is missing: no node has any (1 of 2 nodes do not answer)", id="avoided",
        ),
        pytest.param(
            {"labels": {"disk": "ssd"}}, [SMALL], {"CPU": 2}, [],
            "it takes 1 CPU on a node with disk=ssd: no such node has that free", id="a label",
        ),
        pytest.param(
            {"num_cpus": 2}, [SMALL, SMALL], {"CPU": 2}, [],
            "it takes 2 CPU, and no node has all of that free", id="in pieces",
        ),
    ],
)  # fmt: skip
def test_a_worker_without_a_node_says_why(
    options: dict[str, Any], nodes: list[RayNode], free: Mapping[str, float], avoided: list[str], why: str
) -> None:
    assert why_pending(ActorOptions(**options), nodes, free, avoided) == why


def test_nodes_that_do_not_answer_are_excluded_by_a_label_of_each_node() -> None:
    labels = ActorOptions(labels={"disk": "ssd"})

    assert selector(ActorOptions(), []) == {}
    assert selector(labels, []) == {"disk": "ssd"}
    assert selector(labels, ["b", "a"]) == {"disk": "ssd", NODE_ID: "!in(a,b)"}
    assert selector(ActorOptions(labels={NODE_ID: "a"}), ["a"]) == {NODE_ID: "a"}
