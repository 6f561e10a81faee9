"""The first scenes: the model is registered and asked once, then measured in ones and in batches."""

import json
from typing import Any

from tsctl.client import checked
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.errors import CliError
from tsctl.generator import failure_texts, generator
from tsctl.showcase.facts import MeasuredPace
from tsctl.showcase.load import order_for
from tsctl.showcase.stage import MODEL, SERVED, Stage

SECONDS = 4.0  # of each measurement
BATCH_SIZE = 16
PACES = (("in ones", 1), ("in batches", BATCH_SIZE))
# `retry`: no request of this model changes anything, so one whose worker was killed may run again.
REGISTRATION: dict[str, Any] = {"batch_size": 1, "initial_workers": 1, "retry": "true", "synchronous": "true"}


def register(stage: Stage) -> None:
    """Pack the model, register it, and ask it about the digit.

    Raises:
        CliError: the daemon rejected the model, or the model the digit.
    """
    packing = Packing(
        model_name=MODEL, version="1.0", handler=str(SERVED / "handler.py"), serialized_file=SERVED / "weights.pt"
    )
    stage.archive = write_archive(packing, stage.folder)
    stage.client.json("POST", "/models", url=str(stage.archive), **REGISTRATION)
    answer = stage.client.request("POST", f"/predictions/{MODEL}", stage.body)
    said = checked(answer.status, json.loads(answer.body))
    stage.facts.answer = f"It reads this one as {said['digit']}, with probability {said['probability']:.3f}."


def measure(stage: Stage) -> None:
    """Let the clients ask the same model twice: in ones, then in batches.

    Raises:
        CliError: a request failed.
    """
    for label, batch_size in PACES:
        stage.facts.do(f"measuring {label}", stage.now())
        stage.client.json("PATCH", f"/models/{MODEL}", batch_size=batch_size)
        pace = MeasuredPace(label)
        stage.facts.paces.append(pace)
        before = _batches(stage)
        _run(stage, pace)
        pace.batch = mean_batch(before, _batches(stage))


def _run(stage: Stage, pace: MeasuredPace) -> None:
    order = order_for(stage.client.path, MODEL, stage.facts.clients, SECONDS)
    with generator(order, stage.body) as running:
        for event in running.events():
            if event["stage"] == "done":
                pace.per_second = event["requestsPerSecond"]
                if event["errors"]:
                    failed = f"{event['errors']} of {event['requests']} requests failed {pace.label}"
                    raise CliError(f"{failed}: {', '.join(failure_texts(event))}")
            elif event["seconds"] > 0:
                pace.per_second = event["requests"] / event["seconds"]


def _batches(stage: Stage) -> dict[int, int]:
    """Return how many batches of each size there were."""
    sizes = stage.client.json("GET", f"/models/{MODEL}")[0]["tsctl"]["batching"]["sizes"]
    return {int(size): count for size, count in sizes.items()}


def mean_batch(before: dict[int, int], after: dict[int, int]) -> float:
    """Return the mean size of the batches that came between two counts by size; 0.0 if there were none."""
    gained = {size: count - before.get(size, 0) for size, count in after.items()}
    batches = sum(gained.values())
    return sum(size * count for size, count in gained.items()) / batches if batches else 0.0
