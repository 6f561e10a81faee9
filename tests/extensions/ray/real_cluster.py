"""A Ray cluster on this machine: a head, and nodes that are raylets of their own, in a process of their own.

Ray keeps a connection for each process, so the tests, the daemon's bridge and the cluster's maker are three. A head can
be killed and started anew at the same port.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STORE = 80 * 1024 * 1024  # bytes: the least that Ray takes
PROGRAM = """
import json, os, sys
from ray.cluster_utils import Cluster

nodes = {}
cluster = None
for line in sys.stdin:
    verb, *words = json.loads(line)
    found = None
    if verb == "head":
        [port] = words
        cluster = Cluster(initialize_head=True, head_node_args={
            "num_cpus": 0, "include_dashboard": False, "object_store_memory": %(store)d,
            "gcs_server_port": port,
        })
        found = cluster.address
    elif verb == "add":
        name, cpus, resources, labels, variables = words
        nodes[name] = cluster.add_node(
            num_cpus=cpus, object_store_memory=%(store)d, resources=resources, labels=labels, env_vars=variables
        )
        found = nodes[name].node_id if hasattr(nodes[name], "node_id") else nodes[name]._node_id
    elif verb == "kill":
        [name] = words
        nodes.pop(name).kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
    elif verb == "signal":
        name, number = words
        [raylet] = nodes[name].all_processes["raylet"]
        os.kill(raylet.process.pid, number)
    elif verb == "kill control":
        cluster.head_node.kill_gcs_server()
    elif verb == "kill head":
        head, cluster.head_node = cluster.head_node, None
        head.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        for name in list(nodes):
            nodes.pop(name).kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
    print("done " + json.dumps(found), flush=True)
if cluster is not None:
    for node in (*nodes.values(), cluster.head_node):
        if node is not None:
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
os._exit(0)
"""


class RayCluster:
    """A head without processors, and the nodes that a test adds.

    Attributes:
        address: of the head.
        folder: where the copies of models are, a directory for each node.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Short: Ray's sockets are in it, and the path of a socket has at most 107 characters.
        self._temporary = tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True)
        with (folder / "cluster.log").open("w") as log:
            self._maker = subprocess.Popen(
                [sys.executable, "-c", PROGRAM % {"store": STORE}],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                env=os.environ | {"RAY_TMPDIR": self._temporary.name},
            )  # fmt: skip
        self.address: str = self._do("head", _free_port())

    def add(self, name: str, cpus: int = 2, labels: dict[str, str] | None = None, **resources: float) -> str:
        """Add a node; return its id."""
        variables = {"TSCTL_RAY_CACHE": str(self.folder / name)}
        return str(self._do("add", name, cpus, resources, labels or {}, variables))

    def copies(self, name: str) -> set[str]:
        """Return the names of the copies of models on a node."""
        folder = self.folder / name
        return {path.name for path in folder.iterdir() if path.is_dir()} if folder.exists() else set()

    def kill(self, name: str) -> None:
        """Kill all processes of a node."""
        self._do("kill", name)

    def pause(self, name: str) -> None:
        """Stop a node's raylet: the head declares the node dead if that lasts for some 13 s."""
        self._do("signal", name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a paused node go on."""
        self._do("signal", name, signal.SIGCONT)

    def kill_control(self) -> None:
        """Kill the head's control service alone: nodes, and the actors on them, go on for a minute."""
        self._do("kill control")

    def kill_head(self) -> None:
        """Kill the head and all nodes."""
        self._do("kill head")

    def restart_head(self) -> None:
        """Start a head at the address of the one that was killed."""
        assert self._do("head", int(self.address.rpartition(":")[2])) == self.address

    def close(self) -> None:
        """End all of it."""
        assert self._maker.stdin is not None
        self._maker.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._maker.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._maker.pid, signal.SIGKILL)
        self._maker.wait()
        assert self._maker.stdout is not None
        self._maker.stdout.close()
        self._temporary.cleanup()

    def _do(self, *order: Any) -> Any:
        assert self._maker.stdin is not None and self._maker.stdout is not None
        self._maker.stdin.write(json.dumps(order) + "\n")
        self._maker.stdin.flush()
        while line := self._maker.stdout.readline():
            if line.startswith("done "):
                return json.loads(line.removeprefix("done "))
        raise RuntimeError(f"the cluster broke off at {order}: see {self.folder / 'cluster.log'}")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
