"""Actors, nodes, the bridge and the head go while requests run."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.served import Served, eventually
from tests.extensions.ray.models import Requests, bridge_of, kill_actor, nodes_of, register, workers_of
from tests.extensions.ray.real_cluster import RayCluster


@pytest.mark.parametrize("retry", [True, False], ids=["with retry", "without retry"])
@pytest.mark.parametrize("fault", ["actor", "bridge"])
def test_requests_outlive_an_actor_or_the_bridge_and_run_again_only_with_retry(
    served: Served, fault: str, retry: bool
) -> None:
    register(served, "ran", "--retry" if retry else "--no-retry", "--max-delay", "0", num_cpus=0.1)
    requests = Requests(served)
    requests.begin("a", "b", "c", seconds=1.0)

    if fault == "actor":
        kill_actor(workers_of(served, "ran")[0])
    else:
        os.kill(bridge_of(served), signal.SIGKILL)

    answers = requests.wait()
    assert len(answers) == 3, "each request is answered"
    again = {name for name in answers if requests.ran.count(name) > 1}
    failed = {name for name, answer in answers.items() if answer.status != 200}
    if retry:
        assert len(again) == 1 and not failed
    else:
        assert not again
        assert 1 <= len(failed) <= 2, "the running one, and the one that was sent ahead"
        reason = {"actor": "its actor on node", "bridge": "the bridge to Ray has ended"}[fault]
        assert all(reason in answers[name].json["message"] for name in failed)
    assert requests.ask("after").status == 200


def test_a_node_is_killed_in_the_midst_of_a_batch(cluster: RayCluster, served: Served) -> None:
    lost = cluster.add("third", third=1)
    register(served, "ran", "--workers", "6", "--retry", num_cpus=0.1)
    assert lost[:8] in nodes_of(served, "ran")
    requests = Requests(served)
    names = [str(number) for number in range(6)]
    requests.begin(*names, seconds=2.0)
    eventually(lambda: len(set(requests.ran)) == 6, "each worker runs one")

    began = time.monotonic()
    cluster.kill("third")

    answers = requests.wait()
    assert {answer.status for answer in answers.values()} == {200}
    assert any(requests.ran.count(name) == 2 for name in names)
    eventually(lambda: len(workers_of(served, "ran")) == 6, "six workers on the other nodes")
    assert lost[:8] not in nodes_of(served, "ran")
    assert time.monotonic() - began < 12.0, "before the head declares the node dead"
    assert f"{lost[:8]} does not answer" in served.tsctl("logs", "--lines", "2000")


@pytest.mark.leaves_traceback  # Ray's own, of a head that is another one now
def test_a_daemon_connects_to_a_head_that_was_restarted(idle: Served, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    own = tmp_path / "own"
    own.mkdir()
    cluster = RayCluster(own)
    try:
        cluster.add("one")
        idle.start("--ray-address", cluster.address)
        register(idle, "ran", "--no-retry", "--startup-timeout", "300")
        requests = Requests(idle)
        requests.begin("running", seconds=3.0)

        cluster.kill_control()
        assert requests.ask("meanwhile").status == 200, "an actor needs no head to answer"
        assert requests.wait()["running"].status == 200
        requests.begin("lost", seconds=3.0)
        cluster.kill_head()
        answer = requests.wait()["lost"]
        assert answer.status == 500
        assert "died while it ran this request: " in answer.json["message"]
        cluster.restart_head()
        cluster.add("two")

        assert requests.ask("later").status == 200
        assert requests.ran == ["running", "meanwhile", "lost", "later"]
    finally:
        idle.stop()
        cluster.close()
