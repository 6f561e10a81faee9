"""The `device` of a typed handler's class, which is the user's: whatever it does, its worker serves."""

from typing import Any

import pytest
import torch

from tests.handlers.samples import row
from tests.handlers.typed.calls import told
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.typed.entry import typed_entry


class Raises:
    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def device(self) -> torch.device:
        raise self.error

    def predict(self, rows: list[torch.Tensor]) -> list[str]:
        return [row.device.type for row in rows]


class Compared(Raises):
    """Has a device whose class cannot be asked for."""

    @property
    def device(self) -> Any:
        error = self.error

        class Odd:
            @property  # type: ignore[misc]
            def __class__(self) -> Any:
                raise error

        return Odd()


@pytest.mark.parametrize("kind", [Raises, Compared])
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(StopIteration(), id="as by `next(self.model.parameters())` of a model that has none"),
        pytest.param(AttributeError("no model"), id="no attribute"),
        pytest.param(RuntimeError("not loaded"), id="not loaded"),
    ],
)
def test_a_device_that_raises_is_none(kind: type[Raises], error: Exception) -> None:
    handler = kind(error)
    entry = typed_entry(handler.predict, handler)
    assert entry is not None
    context = Context("model", "/nowhere", {}, batch_size=4, gpu=0)

    entry.initialize(context)

    answers = Runtime(entry, context).run([row(b"[1.5]", "application/json")])
    assert told(answers) == [(200, "cpu")]
