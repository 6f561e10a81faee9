"""Known clients at the command line: the verb that makes their keys."""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class KeysCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {"key": ("Daemon", "Make a key for a client.")}
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "key": (
            ("Make a key for all models", "tsctl key mobile --keys-file keys.toml"),
            ("Allow 20 predictions a second", "tsctl key web --keys-file keys.toml --rate 20"),
        )
    }


COMMAND_LINE = KeysCommandLine()
