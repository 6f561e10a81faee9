"""Routes at the command line: the verb that shares a model's requests among its versions."""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class RoutingCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {"route": ("Models", "Share a model's requests among its versions.")}
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "route": (
            ("Send one of ten requests to version 2.0", "tsctl route scorer 1.0=90 2.0=10"),
            ("Keep each client at its version", "tsctl route scorer 1.0=90 2.0=10 --sticky header:x-user"),
        )
    }


COMMAND_LINE = RoutingCommandLine()
