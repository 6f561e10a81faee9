"""Requests at the same time: batches, a full queue, and models that go while they are asked."""

from dataclasses import replace

from tests.lab.conformance.case import Group, Step, ask, case, manage
from tests.lab.conformance.cases.images import RED


def beside(step: Step, patience: float = 60.0) -> Step:
    return replace(step, background=True, patience=patience)


def own_model(name: str) -> Step:
    return manage("POST", f"/models?url=slow.mar&model_name={name}&initial_workers=1")


TOGETHER = ask("/predictions/batched", b"0")

GROUP = Group(
    "together",
    "Requests at the same time",
    (
        case("a full batch goes at once", *[beside(TOGETHER)] * 3, TOGETHER, uses="batched"),
        case("a batch that is not full goes after its delay", beside(TOGETHER), TOGETHER, uses="batched"),
        case("a batch with an image and with what is none", beside(ask("/predictions/pictures", b"no image")),
             ask("/predictions/pictures", RED), uses="pictures"),
        case(
            "a queue that is full",
            beside(ask("/predictions/slow", b"0.8")),
            beside(ask("/predictions/slow", b"0")),
            ask("/predictions/slow", b"0"),
            uses="slow",
        ),
        case(
            "a queue with room again",
            ask("/predictions/slow", b"0"),
            uses="slow",
        ),
        case(
            "a model that is unregistered while it is asked",
            own_model("leaving"),
            beside(ask("/predictions/leaving", b"0.8"), 4.0),
            beside(ask("/predictions/leaving", b"0"), 4.0),
            manage("DELETE", "/models/leaving"),
        ),
        case(
            "a model that is scaled to none while it is asked",
            own_model("shrinking"),
            beside(ask("/predictions/shrinking", b"0.8"), 4.0),
            manage("PUT", "/models/shrinking?min_worker=0&synchronous=true"),
            manage("DELETE", "/models/shrinking"),
        ),
    ),
    fresh=True,
)  # fmt: skip
