"""Clients that are known by keys: each has its models, its rate, its priority and the size of its bodies.

known_clients   all of them: `--keys-file`, which is read again when it changes
"""

from tsctl.daemon.declarations import EventRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.setting_values import Setting, grouped, parse_path

LEAST_RATE, MOST_RATE = 1e-6, 1e6  # predictions a second
CLIENT_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # as a pattern


class KeysExtension(Extension):
    name = "keys"
    settings = grouped(
        "Addresses",
        Setting(
            "keys_file", None, parse_path, "FILE",
            "The clients of the inference API, by the SHA-256 of their keys.", opens="read",
        ),
    )  # fmt: skip
    events = (
        EventRow("keys-read", "info", "the keys file has changed, and counts"),
        EventRow("keys-invalid", "error", "the keys file has changed and cannot be used; what it said before counts"),
    )

    def install(self, kernel: Kernel) -> Service | None:
        config = kernel.config
        if config.keys_file is None:
            return None
        from tsctl.daemon.extensions.keys.known_clients import KnownClients

        clients = KnownClients(config.keys_file, kernel.clock, kernel.observation.events.add)
        kernel.tokens.clients = clients
        return clients
