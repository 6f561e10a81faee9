"""Why a worker has no node, and which nodes it avoids."""

import json

from tests.kit.said import said_in
from tsctl.handlers.ray.messages import ActorOptions
from tsctl.handlers.ray.nodes import NODE_ID, RayNode, selector, why_pending


def node(name: str, alive: bool = True, **resources: float) -> RayNode:
    return RayNode(name, name, alive, resources)


@said_in("why_pending.txt")
def test_a_worker_without_a_node_says_why(given: str) -> str:
    asked = json.loads(given)
    nodes = [node(name, *alive, **resources) for name, resources, *alive in asked["nodes"]]
    return why_pending(ActorOptions(**asked["options"]), nodes, asked["free"], asked["avoided"]) or ""


def test_nodes_that_do_not_answer_are_excluded_by_a_label_of_each_node() -> None:
    labels = ActorOptions(labels={"disk": "ssd"})

    assert selector(ActorOptions(), []) == {}
    assert selector(labels, []) == {"disk": "ssd"}
    assert selector(labels, ["b", "a"]) == {"disk": "ssd", NODE_ID: "!in(a,b)"}
    assert selector(ActorOptions(labels={NODE_ID: "a"}), ["a"]) == {NODE_ID: "a"}
