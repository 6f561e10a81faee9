"""Fixtures: a cluster for all tests, and a daemon for each."""

from collections.abc import Iterator

import pytest

from tests.e2e.served import Served
from tests.extensions.ray.real_cluster import RayCluster


# Before pytest selects tests by their markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/extensions/ray/" in str(item.path) and "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.ray)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """A head, and two nodes, `one` and `two`, each with two processors and the resource of its name."""
    pytest.importorskip("ray", reason="the package ray is not installed: `python -m tests.lab ray` does it")
    cluster = RayCluster(tmp_path_factory.mktemp("cluster"))
    try:
        for name in ("one", "two"):
            cluster.add(name, labels={"name": name}, **{name: 1})
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def served(idle: Served, cluster: RayCluster) -> Served:
    """A running daemon of the cluster, without models."""
    idle.start("--ray-address", cluster.address)
    return idle
