"""Batches of similar lengths, and batches by age, of an encoder of texts on a real daemon.

python -m tests.lab.benchmarks.texts [--clients 64] [--batch-size 16] [--seconds 20] [--rounds 3] [--single] [--sleeps]

An encoder with the size of BERT-base and random weights (12 layers × 768; text_handler.py) pads a batch to its longest
text. The clients wait for each answer over a connection that stays; their texts have the lengths of questions to a bank
(tests/lab/lengths.py), the same ones in each turn. A daemon serves the model by age and by length in turn, in another
order each round; each turn learns anew. Printed are the sequences a second, also of the worker's processor time, and
the latencies of each turn, and the ratios within a round. `--single` measures batches of one as well, which need no
padding. `--sleeps` serves a model that sleeps for 8 ms and 4 ms for each text of the mean length, padded: that needs no
core, so other programs change little.

Exits 1 if the median ratio of sequences a second is below 1.5, or that of the 99th percentiles above 1.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from daemon.marfile import Packing, write_archive
from daemon.tools.simulator.percentile import nearest_rank
from tests.e2e.served import Served
from tests.lab.benchmarks.sentences import text

FOLDER = Path(__file__).parent
WARM_UP = 10.0  # seconds of each turn that are not counted: batch times are learned anew
LEAST, MOST = 1.5, 1.0  # times the sequences a second, and the 99th percentile


@dataclass(frozen=True, slots=True)
class Turn:
    """What the clients of a turn saw; latencies in seconds.

    Attributes:
        efficiency: sequences a second of the worker's processor time, which other programs change less.
        batch: mean size.
    """

    rate: float
    efficiency: float
    mean: float
    p50: float
    p99: float
    batch: float


async def _client(port: int, target: str, texts: list[bytes], first: int, began: float, end: float) -> list[float]:
    """Send one text after the other; return the latencies of the answers after `began`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen = []
    number = first
    try:
        while (sent := time.monotonic()) < end:
            body = texts[number % len(texts)]
            number += 1
            writer.write(
                b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (target.encode(), len(body)) + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"error: {head.decode()}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            now = time.monotonic()
            if began <= now < end:
                seen.append(now - sent)
    finally:
        writer.close()
    return seen


async def _clients(port: int, model: str, texts: list[bytes], clients: int, seconds: float) -> list[float]:
    began = time.monotonic() + WARM_UP
    each = len(texts) // clients
    seen = await asyncio.gather(
        *(
            _client(port, f"/predictions/{model}", texts, each * number, began, began + seconds)
            for number in range(clients)
        )
    )
    return sorted(latency for latencies in seen for latency in latencies)


def batches(served: Served, model: str) -> tuple[int, int]:
    """Return how many batches and requests the model has run."""
    sizes = served.describe(model)["tsctl"]["batching"]["sizes"]
    return sum(sizes.values()), sum(int(size) * count for size, count in sizes.items())


def processor_time(served: Served, model: str) -> float:
    """Return the seconds that the model's worker has computed."""
    [worker] = served.describe(model)["workers"]
    fields = Path(f"/proc/{worker['pid']}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def turn(served: Served, model: str, way: dict[str, str], clients: int, seconds: float) -> Turn:
    """Measure one way to form batches."""
    served.tsctl("set", model, *(f"{option}{value}" for option, value in way.items()))
    chance = random.Random("texts")
    texts = [text(chance) for _ in range(4000)]
    before, computed = batches(served, model), processor_time(served, model)
    port = int(served.status["inferenceAddress"].rpartition(":")[2])
    seen = asyncio.run(_clients(port, model, texts, clients, seconds))
    count, requests = (after - earlier for after, earlier in zip(batches(served, model), before, strict=True))
    computed = processor_time(served, model) - computed
    return Turn(
        len(seen) / seconds, requests / computed, fmean(seen), nearest_rank(seen, 50), nearest_rank(seen, 99),
        requests / count,
    )  # fmt: skip


def show(name: str, seen: Turn) -> None:
    rates = f"{seen.rate:6.1f} sequences/s, {seen.efficiency:5.1f} a CPU second"
    latencies = f"ms: mean {seen.mean * 1000:6.0f}  p50 {seen.p50 * 1000:6.0f}  p99 {seen.p99 * 1000:6.0f}"
    print(f"  {name:<10} {rates}  {latencies}  batches of {seen.batch:.1f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.texts", description="Measure texts.")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", action="store_true", help="measure batches of one as well")
    parser.add_argument("--sleeps", action="store_true", help="serve a model that only sleeps")
    given = parser.parse_args()
    size = str(given.batch_size)
    ways = {
        "by age": {"--batch-size=": size, "--no-group-by-length": ""},
        "by length": {"--batch-size=": size, "--group-by-length": ""},
    }
    if given.single:
        ways["single"] = {"--batch-size=": "1", "--no-group-by-length": ""}
    ratios: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="tsctl-texts-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            handler = FOLDER / ("padded_handler.py" if given.sleeps else "text_handler.py")
            archive = write_archive(Packing(model_name="encoder", version="1.0", handler=str(handler)), served.store)
            served.tsctl("register", archive.name, "--batch-size", size, "--queue-jobs", "1000")
            for number in range(given.rounds):
                print(f"round {number + 1}", flush=True)
                order = [*ways] if number % 2 == 0 else [*reversed(ways)]
                seen = {name: turn(served, "encoder", ways[name], given.clients, given.seconds) for name in order}
                for name in ways:
                    show(name, seen[name])
                age, length = seen["by age"], seen["by length"]
                ratios.append((length.rate / age.rate, length.p99 / age.p99))
                print("  ratios: {:.2f} × the sequences a second, {:.2f} × the p99".format(*ratios[-1]), end="")
                print(f", {length.efficiency / age.efficiency:.2f} × the sequences a CPU second", flush=True)
        finally:
            served.stop()
    rate, p99 = median(rate for rate, _ in ratios), median(p99 for _, p99 in ratios)
    print(f"median: {rate:.2f} × the sequences a second, {p99:.2f} × the p99")
    return int(rate < LEAST or p99 > MOST)


if __name__ == "__main__":
    sys.exit(main())
