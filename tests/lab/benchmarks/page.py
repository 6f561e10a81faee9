"""docs/benchmarks.md: tables, the machine, caveats, and where we lose: figures in which another server does better."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.lab.benchmarks.models import FOLDER, TOLERANCE
from tests.lab.benchmarks.peers.ours import ROUGH
from tests.lab.benchmarks.results import Results
from tests.lab.benchmarks.workloads import PATIENCE, WORKLOADS
from tests.places import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
OURS = "tsctl"
MARGIN = 1.02  # less is noise
DRAFT = FOLDER / "draft" / "benchmarks.md"

PREDECESSOR = "torchserve"
Column = tuple[str, str, Callable[[float], str]]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g}" if seconds < 1 else f"{seconds * 1000:.0f}"


def whole(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def rate(value: float) -> str:
    return whole(value) if value >= 100 else f"{value:.1f}"


# heading, figure, how it is written
LOAD: Sequence[Column] = (
    ("answers/s", "rate", rate),
    ("p50 ms", "p50", milliseconds),
    ("p95 ms", "p95", milliseconds),
    ("p99 ms", "p99", milliseconds),
    ("CPU a request, µs", "cpu", lambda value: whole(value * 1e6)),
    ("memory, MiB", "pss", lambda value: whole(value / 2**20)),
    ("errors", "errors", whole),
)
KILLED: Sequence[Column] = (
    ("failed with the worker", "lost", whole),
    ("refused after it", "refused", whole),
    (f"never answered ({PATIENCE:g} s)", "hanging", whole),
    ("serves again after", "again", lambda value: "never" if value == float("inf") else f"{value:.2f} s"),
)

_COMPARED = {  # figure → what it is; of all but the rate less is better
    "rate": "answers a second",
    "p50": "p50",
    "p99": "p99",
    "cpu": "CPU a request",
    "pss": "memory",
    "first": "first answer after start",
    "lost": "requests failed with the worker",
    "refused": "requests refused after it",
    "hanging": "requests never answered",
    "again": "time until it serves again",
}


def variant(peer: str) -> bool:
    """Whether a peer is our own with other settings."""
    return peer.startswith(f"{OURS}+")


def at(connections: int) -> str:
    return f"{connections} connection{'s' * (connections > 1)}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Make a Markdown table; the first row is the heading, the first column is text."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    rule = "|---|" + "---:|" * (len(rows[0]) - 1)
    return "\n".join((lines[0], rule, *lines[1:])) + "\n"


def load_table(results: Results, workload: str, connections: int) -> str:
    """One table: a row for each server, with the spread of the rounds and our rate by its own.

    Where we are there with other settings, too, each rate is also compared with the predecessor's.
    """
    ours = results.median(workload, connections, OURS, "rate")
    before = results.median(workload, connections, PREDECESSOR, "rate")
    compared = bool(before) and any(map(variant, results.peers(workload)))
    rows = [["", *(heading for heading, _, _ in LOAD), "tsctl is", *([f"by {PREDECESSOR}"] * compared)]]
    for peer in results.peers(workload):
        cells = [_cell(results, workload, connections, peer, column) for column in LOAD]
        if not any(cells):
            continue
        theirs = results.median(workload, connections, peer, "rate")
        ratio = f"{ours / theirs:.2f} ×" if ours and theirs and peer != OURS and not variant(peer) else ""
        by = f"{theirs / before:.2f} ×" if before and theirs and peer != PREDECESSOR else ""
        rows.append([_bold(peer), *cells, ratio, *([by] * compared)])
    return table(rows)


def kill_table(results: Results) -> str:
    rows = [["", *(heading for heading, _, _ in KILLED)]]
    rows += [
        [_bold(peer), *(_cell(results, "kill", 0, peer, column) for column in KILLED)] for peer in results.peers("kill")
    ]
    return table(rows)


def start_table(results: Results) -> str:
    """Seconds from starting the server to its first good answer, by workload."""
    names = [name for name in results.facts["workloads"] if WORKLOADS[name].connections]
    rows = [["", *(WORKLOADS[name].title for name in names)]]
    for peer in results.facts["peers"]:
        found = [results.median(name, 0, peer, "first") for name in names]
        rows.append([_bold(peer), *("" if v is None else f"{v:.2f} s" for v in found)])
    return table(rows)


def _bold(peer: str) -> str:
    return f"**{peer}**" if peer == OURS or variant(peer) else peer


def _wrong(results: Results, workload: str, connections: int, peer: str) -> bool:
    return any(each.get("wrong") for each in results.of(workload, connections, peer))


def _cell(results: Results, workload: str, connections: int, peer: str, column: Column) -> str:
    _, figure, text = column
    values = [each[figure] for each in results.of(workload, connections, peer) if figure in each]
    median = results.median(workload, connections, peer, figure)
    if median is None:
        return ""
    if figure == "rate" and _wrong(results, workload, connections, peer):
        return "wrong answers"
    spread = f" ({text(min(values))}–{text(max(values))})" if figure == "rate" and len(values) > 1 else ""
    return text(median) + spread


def losses(results: Results) -> list[str]:
    """Sentences; none where nobody does better by more than noise."""
    found = []
    for name in results.facts["workloads"]:
        for connections in results.connections(name):
            how = f", {at(connections)}" if connections else ""
            for figure, what in _COMPARED.items():
                if better := list(_better(results, name, connections, figure)):
                    found.append(f"{WORKLOADS[name].title}{how}: {what}: better is {', '.join(better)}.")
    return found


def _better(results: Results, workload: str, connections: int, figure: str) -> Iterator[str]:
    """Yield the servers that do better than ours, each with its ratio."""
    ours = results.median(workload, connections, OURS, figure)
    for peer in results.peers(workload):
        theirs = results.median(workload, connections, peer, figure)
        if ours is None or theirs is None or peer == OURS or variant(peer):
            continue
        more, less = (theirs, ours) if figure == "rate" else (ours, theirs)
        if more > less * MARGIN and not _wrong(results, workload, connections, peer):
            yield f"{peer} ({_ratio(theirs, ours)})"


def _ratio(theirs: float, ours: float) -> str:
    if not ours or not theirs or float("inf") in (ours, theirs):
        return f"{theirs:g} against {ours:g}"
    return f"{theirs / ours:.2f} × ours"


def page(results: Results) -> str:
    """Write the page."""
    parts = [_HEAD.format(**results.facts), _DRAFT * (not results.facts["whole"])]
    for name in (each for each in results.facts["workloads"] if each != "kill"):
        parts += [f"## {WORKLOADS[name].title}\n", WORKLOADS[name].about]
        for connections in (found for found in results.connections(name) if found):
            parts.append(f"{at(connections)}:\n")
            parts.append(load_table(results, name, connections))
    parts += ["## First answer after start\n", _START, start_table(results)]
    if results.peers("kill"):
        parts += [f"## {WORKLOADS['kill'].title}\n", _KILL, kill_table(results)]
    parts += ["## Growth\n", _GROWTH]
    lost = losses(results)
    parts.append("## Where we lose\n")
    parts.append("\n".join(f"* {line}" for line in lost) + "\n" if lost else "Nowhere, in this run.\n")
    if results.troubles:
        parts += ["## What went wrong in this run\n", "\n".join(f"* {line}" for line in results.troubles) + "\n"]
    parts.append(_CAVEATS.format(tolerance=TOLERANCE, rough=ROUGH))
    return "\n".join(part for part in parts if part)


def write(results: Results) -> Path:
    """Write the page: into docs from a whole run, else a draft into a folder that git ignores."""
    place = PAGE if results.facts["whole"] else DRAFT
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page(results))
    return place


_DRAFT = """\
**A draft:** this run was shortened, made of a part, or not on a quiet machine; its figures show that the
benchmark works, not what the servers can do.
"""
_HEAD = """\
# Benchmarks

`make bench` wrote this page: it installs the other servers into environments of their own, and runs everybody in
turn with the same load generator and the same bodies. What counts are ratios within one run.

Measured on {date} on {machine}: {cores} usable cores, {memory},
Linux {kernel}, Python {python}, torch {torch}. {versions}.
Load: {wrk}, one thread, on the same cores.

Everybody has one worker process, batches of at most {batch_size}, a delay of {delay}, and else its defaults (tsctl:
metrics, request ids, deadlines and the access log on; installed as a wheel, compiled). Medians of {rounds}
interleaved round(s), in brackets the least and the most. CPU and memory (PSS) are those of all processes of a
server. Every server's answers are checked.
`tsctl+bf16+compile` is tsctl with `optimize: [bf16, compile]` in the model's archive ([optimize.md](optimize.md)),
and so on.
"""
_START = "From the start of the process to the first good answer; the server is asked again every 10 ms.\n"
_KILL = "Eight clients ask all the time, a batch takes 20 ms, default settings.\n"
_GROWTH = """\
What a request costs the daemon must not depend on how much there is. Measured on the daemon's own path from bytes to
bytes, with stubs for the network and the workers, at 5fb15c6f:

![Cost of a request by open connections, registered models and waiting jobs](benchmarks/growth.svg)
"""
_CAVEATS = """\
## Caveats

* The load generator runs beside the servers, on the same cores: what it uses, they lack. A server that leaves a core
  free gains by it.
* A closed loop: each connection waits for its answer. So it shows what a server can do, not how long users would
  wait at a given rate; `tsctl bench --rate` does. (In a closed loop its figures are within 5 % of wrk's for batches
  from 2 ms on, measured at d82013d7.)
* The constant answer is the number of bytes received, so that a body that got lost would show. The ResNets have
  random weights: the work is the same, the classes mean nothing.
* An answer about an image is right if it names the best class, and each probability that it has in common with
  torchvision's own example is within {tolerance:.0%} of it. Sixteen bits are less exact: with `bf16` the limit is
  {rough:.0%}, and the ResNets are not trained. Other servers could run in bfloat16 and compile, too; these settings
  are off there.
* What `compile` has compiled is kept for the next round; the first start of all takes a minute longer.
* Requests that are under way when wrk stops are counted nowhere, which costs slow servers most: at
  32 connections up to 31 answers of a run.
* Each server runs with its own defaults otherwise. Tuned by someone who knows it, each would be faster.
* A ResNet beside its loop without a server is what `make gpu DEVICE=cpu` measures.
"""
