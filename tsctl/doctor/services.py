"""Read the services that `tsctl install-service` has written."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from tsctl.doctor.facts import InstalledService
from tsctl.service.files import is_ours, unit_folder

_START = re.compile(r"^ExecStart=(.*)$", re.MULTILINE)


def services(environment: Mapping[str, str]) -> Iterator[InstalledService]:
    """Yield the services of the system and of this user."""
    for of_user in (False, True):
        try:
            folder = unit_folder(environment, of_user=of_user)
        except RuntimeError:  # this user has no home directory
            continue
        yield from services_in(folder)


def services_in(folder: Path) -> Iterator[InstalledService]:
    """Yield the services whose units are in a directory."""
    for unit in sorted(folder.glob("*.service")):
        if is_ours(unit):
            program = program_of(unit.read_text(encoding="utf-8", errors="replace"))
            yield InstalledService(str(unit), program, os.access(program, os.X_OK))


def program_of(text: str) -> str:
    """Return the program that a unit runs; empty if none can be read."""
    found = _START.search(text)
    try:
        words = shlex.split(found[1].removesuffix("\\")) if found else []
    except ValueError:  # a quotation without an end
        return ""
    return words[0].replace("%%", "%").replace("$$", "$") if words else ""
