"""`python -P -m tsctl.handlers.ray.bridge FD DAEMON`: the daemon's orders in, actors on a Ray cluster out.

The bridge's actors end with it: Ray ends the actors of a driver that has gone. The bridge ends with the daemon, or
when the daemon closes the socket; and Ray ends it where the cluster is lost for good. The daemon starts another one.
"""

import asyncio
import logging
import socket
import sys

import ray

from tsctl.handlers.own_process import die_with
from tsctl.handlers.ray.cluster import Cluster
from tsctl.handlers.ray.order_taker import OrderTaker


async def run(descriptor: int) -> None:
    """Serve the daemon until it closes the socket."""
    with socket.socket(fileno=descriptor) as control:
        bridge = OrderTaker(control, Cluster)
        await bridge.closed
        await bridge.close()


def main(arguments: list[str]) -> None:
    """Run the bridge."""
    descriptor, parent = map(int, arguments)
    die_with(parent)
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    asyncio.run(run(descriptor))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
