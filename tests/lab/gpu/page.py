"""The page docs/benchmarks-gpu.md."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from tests.lab.benchmarks.page import table
from tests.lab.gpu import bound
from tests.lab.gpu.bound import Bound
from tests.lab.gpu.rounds import Measured
from tests.lab.gpu.tests import Outcome

GOAL = 0.90  # of the images a second of the loop without a server
TITLE = "# Benchmarks on a GPU\n"
METHOD = f"""\
`make gpu` measures and writes this page; `make gpu DEVICE=cpu` tries it without a GPU, with a small network, and writes
another file.

* **Work**: a JPEG of 500 × 375 pixels in, the five most probable classes out; random weights; `image_classifier` with
  its default optimisations; the photograph is decoded, cut and normalised for each request.
* **Loop**: the same handler in a process without a server. One thread reads the next batches while another runs the
  model.
* **Bound**: the least of three that a server needs, each measured alone in the same run, without our handler: decoding
  by torchvision to uint8, on all cores but {bound.SPARED}, in processes of {bound.THREADS} threads; the model as a CUDA
  graph in bfloat16, at a batch of {bound.BATCH} that is on the card; the bus, which copies such a batch of uint8 from
  pinned memory. The loop shares our handler's limits, and may be far below.
* **Served**: a real daemon with one worker, a closed loop of four clients for each row of a batch, over HTTP from the
  same machine. Loop and daemon run in turns; the ratio is the median of the rounds' ratios. The goal is at least
  {GOAL:.2f}.
* **GPU**: the share of the time in which a kernel ran while the daemon served, as `nvidia-smi` tells it.
"""
NOT_YET = f"""{TITLE}
**Not measured whole yet: a card to measure it on could not be had.** Parts have been, once, on an H100:
[Images on a GPU](guides/gpus.md#images-on-a-gpu). What has changed since was seen on
[null cards](testing.md#without-a-gpu-null-cards), which count calls and have no speed.

{METHOD}"""


def rows(measured: Sequence[Measured], limit: Bound | None) -> Iterator[Sequence[str]]:
    """Yield the heading, and a row for each batch size."""
    head = ("batch size", "clients", "loop, images/s", "served, images/s", "ratio", "of the bound", "GPU busy", "p50")
    yield *head, "p99", "errors"
    for each in measured:
        busy = [load.busy for load in each.served if load.busy is not None]
        rate = median(load.rate for load in each.served)
        yield (
            str(each.batch),
            str(each.clients),
            f"{median(each.loop):.1f}",
            f"{rate:.1f}",
            f"{each.ratio:.2f}",
            "not measured" if limit is None else f"{rate / limit.rate:.2f}",
            f"{median(busy):.0f} %" if busy else "not read",
            *(f"{1000 * median(times):.1f} ms" for times in zip(*(load[2:4] for load in each.served), strict=True)),
            str(sum(load.errors for load in each.served)),
        )


def bounds(limit: Bound) -> str:
    """Write the parts of the bound, in images a second, and which of them it is."""
    parts = {"decoding": limit.decode, "the model": limit.model, "the bus": limit.bus}
    told = ", ".join(f"{name} {rate:.0f}" for name, rate in parts.items())
    which = min(parts, key=parts.__getitem__)
    return f"The bound is {limit.rate:.0f} images/s, by {which} (images/s on {limit.cores} cores: {told})."


def verdict(measured: Sequence[Measured]) -> str:
    """Write whether the goal is met, and by which batch sizes it is not."""
    short = [f"{each.batch} ({each.ratio:.2f})" for each in measured if each.ratio < GOAL]
    return f"The goal of {GOAL:.2f} is {'missed at batch size ' + ', '.join(short) if short else 'met'}."


def page(facts: Mapping[str, str], measured: Sequence[Measured], tested: Outcome | None, limit: Bound | None) -> str:
    """Write the page.

    Args:
        facts: name → value, of the machine and the run.
        tested: None if the tests were not run.
        limit: None on the CPU, which decodes and runs the model on the same cores.
    """
    parts = [TITLE]
    if facts["device"] == "cpu":
        parts += ["**These are not figures of a GPU**: it was tried on the CPU, with a small network.\n"]
    parts += ["\n".join(f"* {name}: {value}" for name, value in facts.items() if value) + "\n", METHOD]
    parts += [f"## {facts['network']}, JPEG in\n", table([*rows(measured, limit)])]
    parts += [bounds(limit) + "\n"] if limit is not None else []
    parts += [verdict(measured) + "\n"]
    if tested is not None:
        passed = f"{'all passed' if tested.good else 'not all passed'}, {tested.seconds:.0f} s"
        parts += ["## Tests\n", f"The tests of handlers and optimisations on `{facts['device']}`: {passed}.\n"]
    return "\n".join(parts)
