"""The pytest fixture `tsctl_serve`. pytest loads this file in every project of the environment: it imports nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from tsctl.python.serving.serve import ServedModel


class ServeForTest(Protocol):
    """The type of the fixture `tsctl_serve`: `tsctl.serve`, whose models end with the test."""

    def __call__(self, target: Any, **options: Any) -> "ServedModel": ...


@pytest.fixture
def tsctl_serve() -> "Iterator[ServeForTest]":
    """Serve models in daemons that end with the test: `model = tsctl_serve(handle, batch_size=4)`."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(target: Any, **options: Any) -> "ServedModel":
            from tsctl.python.serving.serve import serve

            return stack.enter_context(serve(target, **options))

        yield start
