"""Compare servers.

    python -m tests.lab.benchmarks [--only NAME,…] [--peers NAME,…] [--rounds N] [--shorten F]

A whole run writes docs/benchmarks.md. One that is shortened, interrupted or of a part writes a draft,
.bench/draft/benchmarks.md.
"""

import argparse
import datetime
import sys
from collections.abc import Sequence
from dataclasses import replace

from tests.environments import Missing
from tests.lab.benchmarks import page
from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.peers import PEERS
from tests.lab.benchmarks.peers.others import Loop
from tests.lab.benchmarks.peers.peer import BATCH_SIZE, DELAY, DidNotStart, Peer
from tests.lab.benchmarks.results import Results, machine
from tests.lab.benchmarks.workloads import WORKLOADS, Workload, kill, load

ROUNDS = 3


def run_once(peer: Peer | Loop, workload: Workload, results: Results) -> None:
    """Start a server, measure it, stop it; or measure a loop."""
    if isinstance(peer, Loop):
        figures = peer.figures(workload.served(), workload.seconds)
        for connections in workload.connections:
            results.add(workload.name, connections, peer.name, figures)
        print(f"  {peer.name:<18} {figures['rate']:26.1f}/s  p50 {figures['p50'] * 1000:8.2f} ms", flush=True)
        return
    served = peer.adapt(workload.served())
    with peer.running(served) as running:
        if not workload.connections:
            results.add(workload.name, 0, peer.name, kill(running, served))
            return
        results.add(workload.name, 0, peer.name, {"first": running.first_answer})
        for connections, figures in load(running, workload, served):
            results.add(workload.name, connections, peer.name, figures)
            what = f"{figures['rate']:10.1f}/s  p50 {figures['p50'] * 1000:8.2f} ms"
            print(f"  {peer.name:<18} {connections:>4} connections {what}", flush=True)


def measure_all(peers: Sequence[str], chosen: Sequence[Workload], rounds: int, results: Results) -> None:
    """Run everybody in turn, `rounds` times; what fails is noted, and the others go on."""
    for number in range(rounds):
        for workload in chosen:
            print(f"round {number + 1} of {rounds}: {workload.title}", flush=True)
            measured = [each for each in peers if each in workload.peers]
            first = number % max(1, len(measured))  # in each round another one begins
            for name in measured[first:] + measured[:first]:
                try:
                    run_once(PEERS[name], workload, results)
                except (DidNotStart, LookupError, Missing, OSError, wrk.NoWrk) as error:
                    print(f"  {name}: {error}", file=sys.stderr, flush=True)
                    results.troubles.append(f"{workload.title}, {name}: {str(error).splitlines()[0]}")
            results.facts["rounds"] = number + 1


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks", description="Compare servers.")
    names = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--only", type=names, default=list(WORKLOADS), help=f"workloads: {', '.join(WORKLOADS)}")
    parser.add_argument("--peers", type=names, default=list(PEERS), help=f"servers: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--shorten", type=float, default=1.0, help="divide the seconds of each measurement by this")
    given = parser.parse_args(arguments)
    for kind, known, chosen in (("workload", WORKLOADS, given.only), ("server", PEERS, given.peers)):
        unknown = set(chosen) - set(known)
        if unknown:
            parser.error(f"no {kind} is called {', '.join(sorted(unknown))}")
    return given


def main(arguments: Sequence[str]) -> int:
    given = options(arguments)
    try:
        suiting = [name for name in given.peers if any(name in WORKLOADS[each].peers for each in given.only)]
        lacks = {name: PEERS[name].lacks() for name in suiting}
        peers = [name for name in suiting if not lacks[name]]
        versions = {name: PEERS[name].install() for name in peers}
        generator = wrk.version()
    except (Missing, wrk.NoWrk) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    chosen = [
        replace(each, seconds=each.seconds / given.shorten, warm_up=each.warm_up / given.shorten)
        for each in map(WORKLOADS.__getitem__, given.only)
    ]
    results = Results(
        machine()
        | {
            "date": datetime.date.today().isoformat(),
            "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if not page.variant(name)),
            "wrk": generator,
            "workloads": [each.name for each in chosen],
            "peers": peers,
            "rounds": 0,
            "batch_size": BATCH_SIZE,
            "delay": f"{DELAY * 1000:g} ms",
            "whole": given.shorten == 1.0 and given.rounds >= ROUNDS and set(given.only) == set(WORKLOADS),
        }
    )
    results.troubles += [f"{name} was left out: {lack}" for name, lack in lacks.items() if lack]
    try:
        measure_all(peers, chosen, given.rounds, results)
    except KeyboardInterrupt:
        print("interrupted; the page is of what was measured", file=sys.stderr)
        results.facts["whole"] = False
    print(f"wrote {page.write(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
