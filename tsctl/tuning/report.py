"""The output of `tsctl tune`: a table of the settings, one sentence, and the commands that it takes."""

from collections.abc import Sequence
from typing import Any

from tsctl import render
from tsctl.render import best_size_text, number_text
from tsctl.streams import echo
from tsctl.tuning.measuring import OfferedLoad
from tsctl.tuning.verdict import MeasuredSetting, Recommendation, rate_gain

COLUMNS = (
    "", ">BATCH", ">DELAY", "BATCHING", "WORKERS", ">REQ/S", ">GAIN", ">NOISE", ">P50", ">P99", ">CPU/REQ",
)  # fmt: skip
DROPPED = ("CPU/REQ", "DELAY", "P50", "NOISE")  # where the terminal is narrow


def document(settings: Sequence[MeasuredSetting], verdict: Recommendation, load: OfferedLoad) -> dict[str, Any]:
    """Return what was measured: times in seconds, but delays in milliseconds, as in the setting."""
    return {
        "load": {"text": load.text, "clients": load.clients, "requestsPerSecond": load.rate},
        "rounds": max(len(each.turns) for each in settings),
        "settings": [_setting(each, settings[0]) for each in settings],
        "recommended": verdict.best,
        "verdict": verdict.sentence,
    }


def _setting(each: MeasuredSetting, now: MeasuredSetting) -> dict[str, Any]:
    size, delay, batching, workers = each.setting
    row: dict[str, Any] = {
        "batchSize": size, "maxBatchDelay": delay, "batching": batching, "workers": workers, "threads": each.threads,
        "failure": each.failure,
    }  # fmt: skip
    if not each.failure:
        rate, p50, p99, cpu, seconds = map(each.median, range(5))
        gain, noise = (None, None) if now.failure else rate_gain(each, now)
        row |= {"requestsPerSecond": rate, "p50": p50, "p99": p99, "cpu": cpu, "gain": gain, "noise": noise}
        row["seconds"] = seconds
    return row


def show(found: dict[str, Any], sample: str, learned: dict[str, Any]) -> None:
    """Print a result.

    Args:
        found: as saved.
        sample: the request that was repeated, in words.
        learned: by the model that serves, of its clients' requests: part of its document.
    """
    spans = [each["seconds"] for each in found["settings"] if not each["failure"]] or [found["seconds"]]
    text = " to ".join(dict.fromkeys(f"{span:.2g}" for span in (min(spans), max(spans))))
    render.facts(
        [
            ("model", f"{found['model']} {found['version']}, measured with {sample}"),
            ("load", f"{found['load']['text']}; {found['rounds']} rounds of {text} s a setting"),
            ("best size", best_size_text(learned, "learned from the clients' own requests")),
        ]
    )
    render.heading("Settings (workers × threads, times in ms; gain: times the requests a second of now)")
    render.table(COLUMNS, [_row(found, index) for index in range(len(found["settings"]))], drop=DROPPED)
    if found["recommended"] is None:
        return
    echo()
    render.hanging(found["verdict"], 0)
    for line in found["commands"]:
        echo(f"  {line}")


def _row(found: dict[str, Any], index: int) -> tuple[Any, ...]:
    each = found["settings"][index]
    marks = ["now" if index == 0 else "", "best" if index == found["recommended"] else ""]
    head = (
        " ".join(filter(None, marks)), each["batchSize"], f"{each['maxBatchDelay']:g}", each["batching"],
        f"{each['workers']} × {each['threads']}" if each["threads"] else each["workers"],
    )  # fmt: skip
    if each["failure"]:
        return (*head, "failed", "", "", "", "", "")
    gain = ("", "") if index == 0 or each["gain"] is None else (f"{each['gain']:.2f}", f"{each['noise']:.2f}")
    times = [number_text(each[name] * 1000) for name in ("p50", "p99", "cpu")]
    return (*head, number_text(each["requestsPerSecond"]), *gain, *times)
