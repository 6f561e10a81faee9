"""The table of the kinds of events: the core's, and then those of the extensions, in the order of their list."""

from tsctl.daemon.events.event import CORE_KINDS, EventKind
from tsctl.daemon.server.extensions import EXTENSIONS

KINDS: dict[str, EventKind] = CORE_KINDS | {
    row.name: EventKind(row.level, row.meaning) for extension in EXTENSIONS for row in extension.events
}
