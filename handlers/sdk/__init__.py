"""Names for authors of handlers."""

from handlers.moved import adopt

adopt()
