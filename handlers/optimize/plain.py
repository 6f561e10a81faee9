"""The model as it was loaded, for what must not see an optimised one: explanations, and comparing.

Where `initialize` is ours the model is loaded again when it is first needed: a second copy of the
weights in every worker would double what a model costs, and few models are ever asked to explain.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class PlainModel:
    """Gives the model without optimisations.

    Args:
        load: makes another one, the same as the first.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._model: Any = None

    @classmethod
    def of(cls, handler: Any) -> "PlainModel":
        """For a handler that has just been initialized. A model that is not loaded by us is copied now."""
        ours = type(handler).initialize.__module__.startswith("handlers.defaults.")
        if ours and handler.load_again is not None:
            return cls(handler.load_again)
        kept = copy.deepcopy(handler.model)
        return cls(lambda: copy.deepcopy(kept))

    def fresh(self) -> Any:
        """Make one that the caller may change."""
        return self._load()

    def model(self) -> Any:
        """Give the one that is kept for explanations."""
        if self._model is None:
            self._model = self._load()
        return self._model


@contextmanager
def with_plain_model(handler: Any) -> Iterator[None]:
    """Within, `handler.model` is the model as it was loaded."""
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
