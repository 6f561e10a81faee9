"""The packages of real models: in an environment of their own, which a daemon and its workers see by PYTHONPATH.

`python -m tests.lab real-packages` installs those that tests and docs use. The environment sees the packages of the
project's, so that nothing is installed twice. A package that wants other versions than those comes `alone`: without
what it requires.
"""

import argparse
import os
import site
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from tests.environments import Missing, make_environment
from tests.places import ROOT

FOLDER = ROOT / ".real"
_PIP = ("-m", "pip", "--python")


class Packages(NamedTuple):
    """What one model needs beside the project's environment.

    Attributes:
        whole: packages that come with what they require.
        alone: packages that come without.
    """

    whole: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


def installed() -> Path:
    """Return the folder of the packages, whether or not there are any."""
    return FOLDER / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(name: str, packages: Packages, fetch: bool = True) -> None:
    """Install the packages of a model, unless they are there; this process finds them then, too.

    Args:
        fetch: whether they may be installed.

    Raises:
        Missing: they are not there, and may not or could not be installed.
    """
    marker, wanted = FOLDER / f"{name}.installed", repr(packages)
    if not (marker.is_file() and marker.read_text() == wanted):
        if not fetch:
            raise Missing(f"`python -m tests.lab real-packages {name}` installs its packages")
        python = make_environment(FOLDER, [])
        for options, wheels in (((), packages.whole), (("--no-deps",), packages.alone)):
            if wheels:
                print(f"installing {', '.join(wheels)} into {FOLDER}", flush=True)
                command = [sys.executable, *_PIP, str(python), "install", "--quiet", "--disable-pip-version-check"]
                done = subprocess.run([*command, *options, *wheels], stderr=subprocess.PIPE, text=True)
                if done.returncode:
                    raise Missing(f"pip could not install {', '.join(wheels)}: {_last_line(done.stderr)}")
        marker.write_text(wanted)
    if str(installed()) not in sys.path:
        site.addsitedir(str(installed()))


def environment() -> dict[str, str]:
    """Return the variables with which a daemon, and a command of a page, finds the packages."""
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{installed()}{os.pathsep}{before}" if before else str(installed())}


def missing(modules: Iterable[str]) -> list[str]:
    """Return the modules that neither the project's environment has nor this one."""
    return [name for name in modules if PathFinder.find_spec(name, [*sys.path, str(installed())]) is None]


def recordings() -> list[Path]:
    """Return the recordings of Debian's alsa-utils: its own files, or those of the package, which is unpacked here.

    Raises:
        Missing: they are not there, and could not be fetched.
    """
    for folder in (Path("/usr/share/sounds/alsa"), FOLDER / "alsa/usr/share/sounds/alsa"):
        if found := sorted(folder.glob("*_*.wav")):
            return found
    place = FOLDER / "alsa"
    place.mkdir(parents=True, exist_ok=True)
    command = f"cd {place} && apt-get download -q alsa-utils && dpkg-deb --extract alsa-utils_*.deb ."
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    found = sorted(place.glob("usr/share/sounds/alsa/*_*.wav"))
    if not found:
        raise Missing(f"the recordings of Debian's alsa-utils could not be fetched: {_last_line(done.stderr)}")
    return found


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def main(arguments: Sequence[str]) -> int:
    from tests.lab.real.models import MODELS, USED_BY_TESTS

    parser = argparse.ArgumentParser(prog="python -m tests.lab real-packages", description="Install them.")
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], metavar="MODEL")
    failed = 0
    for name in parser.parse_args(arguments).names or USED_BY_TESTS:
        try:
            install(name, MODELS[name].packages)
        except Missing as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
