"""Features that cases wait for. Delete a line as soon as its feature is there: its cases are compared from then on."""

PENDING: frozenset[str] = frozenset()
