"""How soon the first good answer comes: `python -m tests.lab.benchmarks.first_answer [ROUNDS] [--models NAME,…]`.

Whole processes, from the start of the command to a right answer, in turns within each round: mosec, our daemon with a
new state directory, and ours started again in the same one, plain and with `compile`. The ratios are medians of those
within a round: to mosec, and for what is compiled to the plain model's second start. What was compiled is kept between
rounds, so that only the first round compiles; its first starts are left out therefore. With `--sources` ours runs from
the working tree, not from a compiled wheel.
"""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab.benchmarks.models import resnet
from tests.lab.benchmarks.peers import PEERS
from tests.lab.benchmarks.peers.peer import Setup

OURS = ("tsctl", "tsctl+compile", "tsctl+bf16+compile")
MODELS = ("resnet18", "resnet152")
Round = dict[tuple[str, str], float]  # (server, `first` or `again`) → seconds


def measure(model: str, names: Sequence[str]) -> Round:
    """Start every server once, and ours a second time."""
    seconds: Round = {}
    for name in names:
        peer = PEERS[name]
        with tempfile.TemporaryDirectory(prefix="first-") as folder:
            setup = Setup(resnet(model).within(peer.tolerance), Path(folder))
            for turn in ("first", "again") if name in OURS else ("first",):
                running = peer.start(setup)
                running.stop()
                seconds[name, turn] = running.first_answer
    return seconds


def table(model: str, rounds: Sequence[Round]) -> str:
    """Return the lines of a model."""
    lines = []
    for key in rounds[0]:
        name, turn = key
        if turn == "first" and "compile" in name:
            continue
        base = ("mosec", "first") if "compile" not in name else ("tsctl", "again")
        ratio = f"{statistics.median(each[key] / each[base] for each in rounds):.2f}" if base in rounds[0] else "-"
        against = "" if key == base else f"{ratio} × {'mosec' if base[0] == 'mosec' else 'plain, started again'}"
        median = statistics.median(each[key] for each in rounds)
        lines.append(f"{model:10} {name:20} {turn:6} {median:6.2f} s  {against}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    rounds = int(next((each for each in arguments if each.isdigit()), "3"))
    models: Sequence[str] = MODELS
    if "--models" in arguments:
        models = tuple(arguments[arguments.index("--models") + 1].split(","))
    names = [name for name in ("mosec", *OURS) if not PEERS[name].lacks()]
    for name in names:
        if "--sources" not in arguments or name not in OURS:
            PEERS[name].install()
    for model in models:
        print(table(model, [measure(model, names) for _ in range(rounds)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
