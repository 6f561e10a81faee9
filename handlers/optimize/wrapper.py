"""A module that wraps another model and stands in for it."""

from typing import Any, ClassVar

from torch import nn


class ModelWrapper(nn.Module):
    """Forwards all other members to the wrapped model.

    Attributes:
        within: the name of the attribute that holds the wrapped model.
    """

    within: ClassVar[str]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(self.within), name)
