"""Words of a unit file, quoted so that systemd reads them as they were: systemd.syntax(7), systemd.service(5)."""

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]~-]+")


def word(text: str) -> str:
    """Return an argument of a command line. Neither a specifier (`%h`) nor a variable (`$HOME`) is replaced in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    escaped = escaped.replace("\n", "\\n")
    return escaped if _PLAIN.fullmatch(text) else f'"{escaped}"'


def command_line(program: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the value of `ExecStart=`, an argument a line."""
    first = " ".join(word(each) for each in program)
    return " \\\n    ".join((first, *arguments))


def path(text: str) -> str:
    """Return a path for a setting that takes several, such as `ReadWritePaths=`."""
    return word(text).replace("$$", "$")
