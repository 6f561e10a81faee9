"""The output of `tsctl tune`: measurements, the frontier as a table and a plot, and the recommended commands."""

from typing import Any

from tsctl import render
from tsctl.render import number_text
from tsctl.streams import echo
from tsctl.tuning.plot import Dot, scatter

MARKS = "123456789abcdefghijklmnopqrstuvwxyz"


def show(found: dict[str, Any], sample: str) -> None:
    """Print the result for people."""
    way = found["way"]
    render.facts(
        [
            ("model", f"{found['model']} {found['version']}, measured with {sample}"),
            ("load", found["load"]["text"]),
            (
                "overhead",
                f"{_ms(way['latency'])} ms a request, and {_ms(way['cost'])} ms that requests wait for each other",
            ),
        ]
    )
    render.heading("Time of a batch in ms, all workers busy (workers × threads; with concurrent requests)")
    _batch_times(found["batchTimes"])
    render.heading(f"Settings that no other beats, of {found['tried']} simulated (workers × threads, times in ms)")
    _frontier(found)
    if found["frontier"]:
        echo()
        for line in _plot(found):
            echo(line)
    if found["recommended"] is None:
        return
    for line in [*verdict(found), *lengths_text(found)]:
        echo(line)
    if found["commands"]:
        for line in found["commands"]:
            echo(f"  {line}")
    else:
        echo("  the model is already served with these settings")


def verdict(found: dict[str, Any]) -> list[str]:
    """Return the lines about the recommended setting, whole in themselves: the table may be out of sight."""
    best, now = found["frontier"][found["recommended"]], found["now"]
    workers, threads = best["workers"], best["threads"]
    lines = [
        "",
        f"Recommended: {MARKS[found['recommended'] % len(MARKS)]}",
        f"  {found['rule']}",
        f"  batch size {best['batchSize']}, delay at most {best['maxBatchDelay']:g} ms, {best['batching']},"
        f" {workers} worker{'s' * (workers > 1)} × {threads} thread{'s' * (threads > 1)}",
        f"  {_figures(best)}",
    ]
    return lines if now is None else [*lines, f"  now: {_figures(now)}"]


def lengths_text(found: dict[str, Any]) -> list[str]:
    """Return the lines about batches of requests with similar lengths; none where these would gain little."""
    gain = found.get("lengths")
    if gain is None:
        return []
    return [
        f"  requests have {gain['least']} to {gain['most']} bytes, {gain['median']:g} in the median: if the model pads"
        " a batch to its longest,",
        f"  forming batches by length gives {gain['throughput']:.2f} times the requests a second and"
        f" {gain['p99']:.2f} times the p99 (simulated):",
        f"  tsctl set {found['model']} --group-by-length",
    ]


def _figures(point: dict[str, Any]) -> str:
    return f"p99 {_ms(point['p99'])} ms, capacity {number_text(point['capacity'])} requests a second"


def _batch_times(measured: list[dict[str, Any]]) -> None:
    curves = [(placement, placement["curves"][-1]) for placement in measured]
    sizes = sorted({size for _, curve in curves for size in curve["sizes"]})
    rows = []
    for placement, curve in curves:
        known = dict(zip(curve["sizes"], curve["medians"], strict=True))
        fit = f"{_ms(curve['a'])} + {_ms(curve['c'])} n, within {curve['residual']:.0%}"
        times = [_ms(known[size]) if size in known else "" for size in sizes]
        beside = f"+{placement['beside']['batches'] - 1:.0%}"
        rows.append((f"{placement['workers']} × {placement['threads']}", *times, beside, fit))
    render.table(("WORKERS", *(f">{size}" for size in sizes), ">BESIDE", "FIT"), rows)


def _frontier(found: dict[str, Any]) -> None:
    rows = [_row(MARKS[index % len(MARKS)], point) for index, point in enumerate(found["frontier"])]
    if found["now"] is not None:
        rows.append(_row("now", found["now"]))
    columns = ("", "WORKERS", ">BATCH", ">DELAY", "BATCHING", ">CAPACITY", ">REQ/S", ">P50", ">P99", "")
    render.table(columns, rows)


def _row(mark: str, point: dict[str, Any]) -> tuple[Any, ...]:
    return (
        mark,
        f"{point['workers']} × {point['threads']}",
        point["batchSize"],
        f"{point['maxBatchDelay']:g}",
        point["batching"],
        number_text(point["capacity"]),
        number_text(point["throughput"]),
        _ms(point["p50"]),
        _ms(point["p99"]),
        "measured" if point["measured"] else "" if point["keepsUp"] else "falls behind",
    )


def _plot(found: dict[str, Any]) -> list[str]:
    dots = [
        Dot(point["capacity"], point["p99"] * 1000, MARKS[index % len(MARKS)])
        for index, point in enumerate(found["frontier"])
    ]
    now = found["now"]
    before = [] if now is None else [Dot(now["capacity"], now["p99"] * 1000, "+")]
    name = "capacity, requests a second" + ("" if now is None else "   (+ now)")
    width = min(64, render.out.width - 12)
    return scatter([*before, *dots], name, "p99, ms", width=width)


def _ms(seconds: float) -> str:
    return number_text(seconds * 1000)
