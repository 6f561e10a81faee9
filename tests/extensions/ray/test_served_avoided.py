"""A node that did not answer gets no worker until it answers a probe."""

import subprocess
import sys

from tests.extensions.ray.real_cluster import RayCluster

PROGRAM = """
import asyncio, logging, sys
from tsctl.handlers.ray.cluster import LOOK_EVERY, Cluster

async def main(address, node):
    cluster = Cluster(address)
    await cluster.connect(print)
    cluster.avoid(node, "paused")
    await asyncio.sleep(1.5 * LOOK_EVERY)  # it has been asked
    print("avoided", [*cluster.avoided], flush=True)
    sys.stdin.readline()  # the node goes on
    while cluster.avoided:
        await asyncio.sleep(0.01)
    print("used again", flush=True)

logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
asyncio.run(main(*sys.argv[1:]))
"""


def test_a_node_that_answers_again_is_used_again(cluster: RayCluster) -> None:
    node = cluster.add("slow")
    cluster.pause("slow")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, cluster.address, node],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdin is not None and program.stdout is not None
        said = [program.stdout.readline().strip() for _ in range(2)]
        cluster.resume("slow")
        program.stdin.write("\n")
        program.stdin.close()
        said += program.stdout.read().splitlines()

    cluster.kill("slow")
    assert said == [
        "node paused does not answer, and gets no worker until it does", f"avoided ['{node}']",
        "node paused answers again", "used again",
    ]  # fmt: skip
