"""The unit files: where they are, written all or none, and removed; only those that this program wrote."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tsctl.errors import CliError
from tsctl.service.service import MARK


def unit_folder(environment: Mapping[str, str], *, of_user: bool) -> Path:
    """Return the directory of an administrator's units, or of a user's."""
    if not of_user:
        return Path("/etc/systemd/system")
    config = environment.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "systemd" / "user"


def write_units(folder: Path, texts: Mapping[str, str], *, force: bool) -> None:
    """Write the units, each in one step, so that systemd never reads half of one.

    Raises:
        CliError: a file exists that this program did not write, and `force` is not given; or the directory cannot
            be written.
    """
    for name in texts:
        if not force and (folder / name).exists() and not is_ours(folder / name):
            raise CliError(
                f"`{folder / name}` was not written by `tsctl install-service`",
                "choose a name with `--name`, or replace the file with `--force`",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            draft = folder / f".{name}.draft"
            draft.write_text(text, encoding="utf-8")
            draft.chmod(0o644)
            os.replace(draft, folder / name)
    except OSError as error:
        raise _unwritable(folder, error) from None


def units_there(folder: Path, name: str, *, force: bool) -> list[Path]:
    """Return the units of a name that are there, the socket first.

    Raises:
        CliError: none is there, or this program did not write one, and `force` is not given.
    """
    found = [file for kind in ("socket", "service") if (file := folder / f"{name}.{kind}").exists()]
    if not found:
        raise CliError(
            f"there is no service `{name}` in `{folder}`", "name it with `--name`; `--user` for a user's own"
        )
    for file in found:
        if not force and not is_ours(file):
            raise CliError(f"`{file}` was not written by `tsctl install-service`", "`--force` removes the file anyway")
    return found


def remove_units(files: Sequence[Path]) -> None:
    """Remove the units.

    Raises:
        CliError: the directory cannot be written.
    """
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(file.parent, error) from None


def is_ours(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").startswith(MARK)
    return False


def systemctl(*arguments: str) -> None:
    """Run systemctl.

    Raises:
        CliError: systemctl is not there, or failed.
    """
    program = shutil.which("systemctl")
    if program is None:
        raise CliError("there is no `systemctl` on this machine", "leave out `--now`, or run `tsctl start`")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CliError(f"`systemctl {' '.join(arguments)}` failed", details=done.stderr.strip())


def _unwritable(folder: Path, error: OSError) -> CliError:
    remedy = "run this as root, or install a service of your own with `--user`"
    return CliError(f"cannot write `{folder}`: {error.strerror}", remedy if error.errno in (1, 13) else "")
