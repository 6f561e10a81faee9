"""A thread may have its own value of a handler's attribute."""

import threading

from tsctl.handlers.sdk.per_batch import PerBatch, own_values


class Handler:
    context = PerBatch()
    model = PerBatch()


def seen_elsewhere(handler: Handler) -> object:
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(handler.context))
    thread.start()
    thread.join()
    return seen[0]


def test_without_own_values_it_is_an_attribute_like_any_other() -> None:
    handler = Handler()

    assert handler.context is None
    handler.context = "a"
    assert (handler.context, seen_elsewhere(handler), vars(handler)) == ("a", "a", {"context": "a"})


def test_an_own_value_and_what_is_assigned_to_it_stay_within_the_thread() -> None:
    handler, other = Handler(), Handler()
    handler.context = "shared"

    with own_values(handler, context="own"):
        assert (handler.context, seen_elsewhere(handler)) == ("own", "shared")
        handler.context = "assigned"
        handler.model = "model"
        assert (handler.context, seen_elsewhere(handler), other.context) == ("assigned", "shared", None)
        with own_values(handler, context="inner"):
            assert handler.context == "inner"
        assert handler.context == "assigned"

    assert (handler.context, handler.model) == ("shared", "model")
