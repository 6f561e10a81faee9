"""The guide's commands work as typed, but for the address of the cluster."""

from tests.e2e.served import Served, typed
from tests.e2e.test_documented import BLOCK, ROOT
from tests.extensions.ray.real_cluster import RayCluster


def test_the_guide(idle: Served, cluster: RayCluster) -> None:
    text = (ROOT / "docs/guides/ray.md").read_text()
    blocks = [block["text"] for block in BLOCK.finditer(text) if block["kind"] == "bash" and not block["reason"]]
    commands = "\n".join(blocks).replace("10.0.0.5:6379", cluster.address)

    done = typed(idle, commands, idle.folder)

    assert done.returncode == 0, done.stderr
    assert "HELLO from " in done.stdout
    assert "NODE" in done.stdout
