"""The kinds of events, from their table."""

from docs.generate.markdown import code, table
from tsctl.daemon.events.events import KINDS


def events() -> str:
    """Write each kind of events with its level and meaning."""
    rows = [(code(name), kind.level, kind.meaning) for name, kind in KINDS.items()]
    return f"""# Events

What an operator must not miss: `tsctl events [-f] [MODEL]`, `GET /tsctl/events` on the control socket, the last ten of a version in
`tsctl describe MODEL`, and a line each in the daemon's log. See [Operations](../guides/operations.md#events).

{table(("kind", "level", "meaning"), rows)}
"""
