"""A daemon is replaced, and everything fails at once, while clients ask without a pause."""

from pathlib import Path

from tests.e2e.served import Served
from tests.extensions.ray.chaos import Load, chaos, verdict
from tests.extensions.ray.models import Requests, register, workers_of
from tests.extensions.ray.real_cluster import RayCluster


def test_an_upgrade_under_load_fails_no_request(served: Served) -> None:
    register(served, "ran", "--workers", "2", num_cpus=0.1)
    before = {worker["pid"] for worker in workers_of(served, "ran")}

    with Load(Requests(served), clients=4, seconds=0.02) as load:
        load.wait_for(50)
        served.tsctl("upgrade")
        load.wait_for(50)

    assert {answer.status for answer in load.requests.answers.values()} == {200}
    assert sorted(load.requests.ran) == sorted(load.requests.answers)
    assert not before & {worker["pid"] for worker in workers_of(served, "ran")}


def test_half_a_minute_of_chaos(cluster: RayCluster, served: Served, tmp_path: Path) -> None:
    assert verdict(chaos(cluster, served, seconds=30.0, seed=1)) == []
