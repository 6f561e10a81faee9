"""Models whose workers run on the nodes of a Ray cluster: a real cluster, daemon and handlers."""

import json
from pathlib import Path

from tests.e2e.served import Served, eventually
from tests.extensions.ray.models import Requests, nodes_of, register, workers_of
from tests.extensions.ray.real_cluster import RayCluster
from tests.kit.shelf import needs


def test_workers_spread_over_the_nodes_and_each_node_gets_the_files_once(cluster: RayCluster, served: Served) -> None:
    before = [cluster.copies(name) for name in ("one", "two")]

    register(served, "echo", "--workers", "4", num_cpus=0.5)

    assert len(nodes_of(served, "echo")) == 2
    answer = served.ask("/predictions/echo", b"hello", Content_Type="application/octet-stream")
    assert answer.json["row"]["body"] == {"bytearray": "hello"}
    new = [cluster.copies(name) - had for name, had in zip(("one", "two"), before, strict=True)]
    assert len(new[0]) == 1 and new[0] == new[1]
    assert "echo is loaded echo" in served.tsctl("logs", "echo")


def test_the_nodes_are_shown(served: Served) -> None:
    register(served, "echo", resources={"two": 0.1})

    [worker] = workers_of(served, "echo")
    assert worker["memoryUsage"] == 0
    assert worker["node"] in served.tsctl("describe", "echo")


@needs("live")
def test_the_numbers_of_all_models_name_the_nodes(served: Served) -> None:
    register(served, "echo", resources={"two": 0.1})

    [worker] = workers_of(served, "echo")
    assert worker["node"] in json.dumps(served.command("GET", "/tsctl/live").json)


def test_a_label_chooses_the_node(served: Served) -> None:
    register(served, "echo", "--workers", "2", num_cpus=0.5, labels={"name": "two"})

    assert len(nodes_of(served, "echo")) == 1


def test_an_answer_is_streamed(served: Served) -> None:
    register(served, "pours")

    answer = served.ask("/predictions/pours", b"8", Content_Type="application/octet-stream")

    assert answer.status == 200
    assert answer.body == bytes(8 * 2**20) + b"end"


def test_a_large_body_arrives(served: Served) -> None:
    register(served, "mirror")
    body = bytes(range(256)) * 4 * 4096

    answer = served.ask("/predictions/mirror", body, Content_Type="application/octet-stream")

    assert (answer.status, answer.body) == (200, body)


def test_a_handler_that_fails_or_ends_its_process_does_so_as_on_this_machine(served: Served) -> None:
    register(served, "obey")

    def ask(word: str) -> int:
        body = json.dumps({"do": word}).encode()
        return served.ask("/predictions/obey", body, Content_Type="application/json").status

    assert [ask(word) for word in ("print", "raise", "refuse", "exit", "print", "die", "print")] == [
        200, 503, 418, 500, 200, 507, 200,
    ]  # fmt: skip
    assert "printed by the handler" in served.tsctl("logs", "obey")
    assert "it exited with code 7" in served.tsctl("logs")


def test_a_model_is_replaced_and_scaled(served: Served) -> None:
    register(served, "ran", "--workers", "1", num_cpus=0.1)
    requests = Requests(served)
    requests.begin("old", seconds=2.0)
    old = workers_of(served, "ran")[0]["pid"]

    register(served, "ran", "--replace", "--workers", "2", num_cpus=0.1)
    served.tsctl("scale", "ran", "3")

    assert requests.wait()["old"].json["pid"] == old
    eventually(lambda: len(workers_of(served, "ran")) == 3, "three workers of the new archive")
    assert old not in {worker["pid"] for worker in workers_of(served, "ran")}
    assert requests.ask("new").status == 200


def test_a_daemon_without_a_cluster_says_so(idle: Served, tmp_path: Path) -> None:
    idle.start()
    archive = idle.pack("echo")

    done = idle.run("register", archive, "--engine", "ray")

    assert done.returncode == 1
    assert "start it with `--ray-address HOST:PORT`" in done.stderr


def test_a_resource_that_no_node_has_is_named(served: Served) -> None:
    config = served.folder / "c.yaml"
    config.write_text("engine: ray\nray: {resources: {tpu: 1}}\n")
    archive = served.pack("echo", config_file=config)

    done = served.run("register", archive, "--startup-timeout", "20")

    assert done.returncode == 1
    assert (
        "within the startup timeout of 20 s: it takes 1 CPU, 1 tpu, and tpu is missing: no node has any" in done.stderr
    )


def test_a_worker_starts_on_a_node_that_is_added(cluster: RayCluster, served: Served) -> None:
    register(served, "echo", "--no-wait", resources={"late": 1})
    eventually(lambda: "late is missing" in served.tsctl("describe", "echo"), "the reason is shown")

    cluster.add("late", late=1)
    try:
        eventually(lambda: len(workers_of(served, "echo")) == 1, "the worker is ready")
    finally:
        served.tsctl("unregister", "echo")
        cluster.kill("late")
