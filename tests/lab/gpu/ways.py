"""ResNet-50 served in several ways, and where its time goes: `python -m tests.lab.gpu.ways [--device cuda:0] [NAME …]`.

For each way: requests a second with enough clients and with one, latency, how busy the GPU was, and how many cores each
process took: the worker, the processes that read images for it, and the daemon. The names are those of WAYS. Exit code
1: one of them could not be measured.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.lab.benchmarks.measuring import processes
from tests.lab.benchmarks.peers.peer import DidNotStart
from tests.lab.gpu.device import CPU, stop_on_term
from tests.lab.gpu.served import load, serving
from tsctl.daemon.core.machine.processes import parents_in
from tsctl.errors import CliError

WARM_UP, SECONDS, ALONE = 3.0, 5.0, 2.0
LEAST = 0.1  # cores: a process of less is not told


class Way(NamedTuple):
    """One way to serve.

    Attributes:
        clients: of a closed loop, for each row of a batch.
        further: lines of model-config.yaml.
    """

    batch: int = 32
    clients: int = 4
    further: str = ""


WAYS: Mapping[str, Way] = {
    "default": Way(),
    "clients": Way(clients=6),
    "small": Way(batch=8),
    "plain": Way(further="optimize: [none]\n"),
    "eager": Way(further="optimize: [none, fast_images, fold, channels_last]\n"),
    "bf16": Way(further="optimize: [bf16]\n", clients=6),
    "bf16-large": Way(batch=64, further="optimize: [bf16]\n", clients=6),
}


def measure(name: str, way: Way, network: str, device: str) -> None:
    """Serve in one way, and print what was measured.

    Raises:
        DidNotStart: it gives no right answer.
    """
    clients = way.clients * way.batch
    with serving(network, device, way.batch, way.further) as running:
        load(running, network, clients, WARM_UP)
        before = {pid: processes.cpu_of_one(pid) for pid in processes.tree(running.process.pid)}
        began = time.monotonic()
        many = load(running, network, clients, SECONDS, device)
        took = time.monotonic() - began
        after = {pid: processes.cpu_of_one(pid) for pid in processes.tree(running.process.pid)}
        parents = parents_in()  # what reads images is a child of the worker
        alone = load(running, network, 1, ALONE)
        print(
            f"{name}, batch {way.batch}: {many.rate:.0f}/s of {clients} clients, {many.errors} errors,"
            f" p50 {1000 * many.p50:.1f} ms, p99 {1000 * many.p99:.1f} ms, GPU {many.busy_text};"
            f" one client {alone.rate:.0f}/s, p50 {1000 * alone.p50:.2f} ms"
        )
        for pid, cpu in after.items():
            if (cores := (cpu - before.get(pid, 0.0)) / took) >= LEAST:
                print(
                    f"    {cores:5.2f} cores  {pid} of {parents.get(pid)}: {processes.command_of(pid)[:80]}", flush=True
                )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.gpu.ways", description="Serve in several ways.")
    parser.add_argument("--device", default="cuda:0", help="`cuda:0`, or `cpu` to try it with a small network")
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], metavar="NAME", help=", ".join(WAYS))
    given = parser.parse_args(arguments)
    failed = False
    for name in given.ways or WAYS:
        try:
            measure(name, WAYS[name], "resnet18" if given.device == CPU else "resnet50", given.device)
        except (DidNotStart, CliError) as reason:  # no reason to lose the others
            print(f"{name}: {reason}", flush=True)
            failed = True
    return int(failed)


if __name__ == "__main__":
    stop_on_term()
    sys.exit(main(sys.argv[1:]))
