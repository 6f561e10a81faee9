"""Clients that are known by keys: each has its models, its rate, its priority and the size of its bodies.

known_clients   all of them: `--keys-file`, which is read again when it changes
"""

from typing import TYPE_CHECKING

from tsctl.daemon.extension import EventRow, Extension
from tsctl.daemon.setting_values import Setting, parse_path

if TYPE_CHECKING:
    from tsctl.daemon.config.config import Config
    from tsctl.daemon.core.client import Clients
    from tsctl.daemon.core.clock import Clock
    from tsctl.daemon.events.events import Events


class KeysExtension(Extension):
    name = "keys"
    settings = (
        Setting(
            "keys_file", None, parse_path, "FILE",
            "The clients of the inference API, by the SHA-256 of their keys.", opens="read",
        ),
    )  # fmt: skip
    events = (
        EventRow("keys-read", "info", "the keys file has changed, and counts"),
        EventRow("keys-invalid", "error", "the keys file has changed and cannot be used; what it said before counts"),
    )
    help_groups = (("Addresses", ("keys_file",)),)

    def clients(self, config: "Config", clock: "Clock", events: "Events") -> "Clients | None":
        if config.keys_file is None:
            return None
        from tsctl.daemon.extensions.keys.known_clients import KnownClients

        return KnownClients(config.keys_file, clock.now, events.add)
