"""The built-in handlers, and the base classes of users' own."""

from handlers.moved import adopt

adopt()
