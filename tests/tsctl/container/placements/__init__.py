"""Containers, and where they serve what, in text files that are compared whole.

`## the claim` begins one. In it:

    + inference_address=http://0.0.0.0:8080    a line of TorchServe's file
    $ PROTOCOL_VERSION=v1            a variable of the environment, beside those of a place for the state
    - management_without_token=true  a flag, where FOLDER is an empty folder with a private file `token`
    ? KSERVE                         the platform, and so all that comes of it; the next lines begin anew

The rest is written by `python -m tests.lab transcripts`: addresses with what is served there, other settings than
usual, and notes.
"""

from pathlib import Path
from typing import Any

from tests.tsctl.container.placed import STATE, Placed
from tsctl.container.host import Host
from tsctl.daemon.config.config import resolve

SHOWN = ("models", "envelope", "response_timeout", "default_workers")


def play(lines: list[str], folder: Path) -> list[str]:
    """Place each container, and return the lines as they would have to be."""
    made: list[str] = []
    given: dict[str, list[str]] = {"+": [], "$": [], "-": []}
    for line in lines:
        if line[:1] in given and line[:1]:
            given[line[0]].append(line[2:].replace("FOLDER", str(folder)))
            made.append(line)
        elif line.startswith("? "):
            made += [line, *(each.replace(str(folder), "FOLDER") for each in _placed(given, folder, Host[line[2:]]))]
            given = {key: [] for key in given}
    return made


def _placed(given: dict[str, list[str]], folder: Path, host: Host) -> list[str]:
    flags: dict[str, Any] = dict(text.split("=", 1) for text in given["-"])
    flags = {name: True if value == "true" else value for name, value in flags.items()}
    variables = STATE | dict(text.split("=", 1) for text in given["$"])
    placed = Placed(folder, "\n".join(given["+"]) or None, variables, host, **flags)
    usual = resolve({}, STATE)
    return [
        *(f"@ {address} {' '.join(roles)}" for address, roles in placed.addresses.items()),
        *(
            f"= {name}: {getattr(placed.config, name)}"
            for name in SHOWN
            if getattr(placed.config, name) != getattr(usual, name)
        ),
        *(f"= {note}" for note in placed.placement.notes),
    ]
