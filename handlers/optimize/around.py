"""A model that stands for another, which it has within."""

from typing import Any, ClassVar

from torch import nn


class Around(nn.Module):
    """Its other members are those of the model within.

    Attributes:
        within: the name of the attribute that is that model.
    """

    within: ClassVar[str]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(self.within), name)
