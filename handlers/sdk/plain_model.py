"""The model as loaded, for explanations and comparisons, which must not use an optimised one.

Where `initialize` is ours the model is loaded again on first use: a second copy of the weights in every worker would
double a model's memory, and few models are ever asked to explain.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class PlainModel:
    """Provides the model without optimisations.

    Args:
        load: loads another copy of the model.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._model: Any = None

    @classmethod
    def of(cls, handler: Any) -> "PlainModel":
        """Create one for a handler just initialized. A model that our code did not load is copied now."""
        ours = type(handler).initialize.__module__.startswith("tsctl.handlers.builtin.")
        if ours and handler.load_again is not None:
            return cls(handler.load_again)
        kept = copy.deepcopy(handler.model)
        return cls(lambda: copy.deepcopy(kept))

    def fresh(self) -> Any:
        """Return a copy that the caller may change."""
        return self._load()

    def model(self) -> Any:
        """Return the copy kept for explanations."""
        if self._model is None:
            self._model = self._load()
        return self._model


@contextmanager
def with_plain_model(handler: Any) -> Iterator[None]:
    """Set `handler.model` to the model as loaded, within the block."""
    plain: PlainModel | None = getattr(handler, "plain", None)
    if plain is None:
        yield
        return
    optimized = handler.model
    handler.model = plain.model()
    try:
        yield
    finally:
        handler.model = optimized
