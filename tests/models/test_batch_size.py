"""Where nobody names a batch size, the client's fallback counts for handlers that take batches, and for no other."""

import pytest

from tsctl.daemon.models.registering.spec import default_batch_size
from tsctl.handlers.wire import Declared, Input


def declared(*, batches: bool = True, batch_size: int = 0, waits: bool = False) -> Declared:
    return Declared([Input("texts", "text", "list[str]")], batches, batch_size, output="list[dict]", waits=waits)


BUILT_IN = Declared([Input("data", "image")], batches=True, built_in=True)


@pytest.mark.parametrize(
    ("fallback", "handler", "says", "expected"),
    [
        pytest.param(0, "image_classifier", None, (1, "default"), id="built in, without a fallback: as in TorchServe"),
        pytest.param(0, "h.py", None, (1, "default"), id="so is TorchServe's form"),
        pytest.param(8, "h.py", BUILT_IN, (8, "default for built-in handlers"), id="a subclass of one: the same"),
        pytest.param(0, "h.py", BUILT_IN, (1, "default"), id="in an archive, too"),
        pytest.param(
            8, "h.py", Declared([Input("data", "image")], False, built_in=True), (1, "default"),
            id="but for one whose steps were written for batches of one"),
        pytest.param(8, "h.py", None, (1, "default"), id="a handler of TorchServe's form keeps one"),
        pytest.param(8, "image_classifier", None, (8, "default for built-in handlers"), id="built in: the fallback"),
        pytest.param(0, "h.py", declared(), (32, "default for typed handlers"), id="typed: the signature decides"),
        pytest.param(4, "h.py", declared(), (32, "default for typed handlers"), id="whatever the client sends"),
        pytest.param(
            0, "h.py", declared(batches=False, waits=True), (32, "default for coroutines"), id="a coroutine: 32 wait"),
        pytest.param(
            0, "h.py", declared(waits=True), (32, "default for typed handlers"), id="one that takes lists is one call"),
        pytest.param(
            8, "h.py", declared(batch_size=32), (32, "the handler's declaration"), id="its own size wins"),
        pytest.param(
            8, "h.py", declared(batches=False), (1, "default for handlers of single values"), id="no lists, no batch"),
        pytest.param(
            8, "h.py", declared(batches=False, batch_size=4), (4, "the handler's declaration"),
            id="unless it names a size"),
        pytest.param(
            8, "h.py", declared(batch_size=2**50), (10**9, "the handler's declaration"), id="but no absurd one"),
    ],
)  # fmt: skip
def test_default_batch_size(fallback: int, handler: str, says: Declared | None, expected: tuple[int, str]) -> None:
    assert default_batch_size(fallback, handler, says, "auto") == expected


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        pytest.param(declared(), (8, "default for typed handlers with `fixed`"), id="lists"),
        pytest.param(
            declared(batches=False, waits=True), (8, "default for typed handlers with `fixed`"), id="a coroutine"),
        pytest.param(declared(batch_size=32), (32, "the handler's declaration"), id="but for a size of its own"),
        pytest.param(declared(batches=False), (1, "default for handlers of single values"), id="and single values"),
    ],
)  # fmt: skip
def test_fixed_waits_for_no_more_than_eight(says: Declared, expected: tuple[int, str]) -> None:
    assert default_batch_size(8, "h.py", says, "fixed") == expected
