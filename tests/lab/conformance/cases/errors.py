"""Handlers that go wrong, and requests that cannot be served."""

from tests.lab.conformance.case import Case, Group, ask, ask_json, case, manage


def fails(name: str, word: str) -> Case:
    return case(name, ask_json("/predictions/fails", {"do": word}), uses="fails")


def survives(name: str, word: str) -> Case:
    """Check that damage to the worker does not spoil the next answer."""
    target = "/predictions/fails"
    return case(name, ask_json(target, {"do": word}), ask_json(target, {"do": "well"}), uses="fails")


def dies(name: str, word: str) -> Case:
    """The worker goes; the next one is waited for."""
    target = "/predictions/fails"
    return case(
        name, ask_json(target, {"do": word}), manage("GET", "/models/fails", until='"READY"'),
        ask_json(target, {"do": "well"}), uses="fails",
    )  # fmt: skip


GROUP = Group(
    "errors",
    "Errors",
    (
        fails("a handler answers well", "well"),
        fails("an exception", "raise"),
        fails("an exception without text", "raise-nothing"),
        fails("a PredictionException without a code", "refuse-plainly"),
        fails("a PredictionException with 400", "refuse 400"),
        fails("a PredictionException with 404", "refuse 404"),
        fails("a PredictionException with 413", "refuse 413"),
        fails("a PredictionException with 429", "refuse 429"),
        fails("a PredictionException with 503", "refuse 503"),
        fails("a PredictionException with 507", "refuse 507"),
        fails("out of memory", "memory"),
        fails("an exception that names CUDA", "cuda"),
        fails("None instead of a list", "return none"),
        fails("a dict instead of a list", "return dict"),
        fails("a string instead of a list", "return str"),
        fails("a tuple instead of a list", "return tuple"),
        fails("a generator instead of a list", "generate"),
        fails("a list that is too short", "return empty"),
        fails("a list that is too long", "return two"),
        case("rows without the key that the handler wants", ask("/predictions/fails", b"raw"), uses="fails"),
        survives("a handler that prints", "print"),
        survives("a handler that changes the directory", "chdir"),
        survives("a handler that installs a signal handler", "signal"),
        survives("a handler that forks", "fork"),
        dies("a handler that calls sys.exit", "exit"),
        dies("a worker that leaves", "leave"),
        dies("a worker that is killed", "die"),
        dies("a worker that takes longer than the response timeout", "sleep 2.5"),
        case("an answer of 7 MB", ask("/predictions/large"), uses="large"),
        case("an unknown model", ask("/predictions/nobody", b"x")),
        case("an unknown version", ask("/predictions/entry/9.9", b"x"), uses="entry"),
        case(
            "a model without workers",
            manage("POST", "/models?url=entry.mar&model_name=idle"),
            ask("/predictions/idle", b"x"),
            ask("/predictions/idle/1.0", b"x"),
            manage("DELETE", "/models/idle"),
        ),
    ),
)
