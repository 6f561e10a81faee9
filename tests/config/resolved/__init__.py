"""Configurations, and what they come to, in text files that are compared whole.

`## the claim` begins one. In it:

    + job_queue_size=7               a line of the file config.properties
    $ TSCTL_GRACE=6                  a variable of the environment; FOLDER is the folder of all files
    - grace=7                        a flag
    ?                                what comes of it; the next lines begin anew. `??`: the addresses, too

The rest is written by `python -m tests.lab transcripts`:

    = grace: 7.0 (flag)              a setting, and whose word it was
    = note: …                        what the log says at the start
    @ http://127.0.0.1:8080 inference
    ! StartError: …                  why there is no start, and after `→` what to do
"""

from pathlib import Path

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.endpoints import Endpoint, choose_endpoints
from tsctl.daemon.core.errors import StartError


def play(lines: list[str], folder: Path) -> list[str]:
    """Resolve each configuration, with its file in an empty folder, and return the lines as they would have to be."""
    made: list[str] = []
    given: dict[str, list[str]] = {"+": [], "$": [], "-": []}
    for line in lines:
        if line[:1] in given and line[:1]:
            made.append(line)
            given[line[0]].append(line[2:].replace("FOLDER", str(folder)))
        elif line in ("?", "??"):
            made += [line, *(told.replace(str(folder), "FOLDER") for told in _told(given, folder, line == "??"))]
            given = {key: [] for key in given}
    return made


def _told(given: dict[str, list[str]], folder: Path, addresses: bool) -> list[str]:
    flags = {"state_dir": str(folder)} | dict(text.split("=", 1) for text in given["-"])
    environment = dict(text.split("=", 1) for text in given["$"])
    if given["+"]:
        (folder / "config.properties").write_text("\n".join(given["+"]) + "\n")
        flags["ts_config"] = str(folder / "config.properties")
    try:
        config = resolve(flags, environment)
        there = [f"@ {_shown(each)}" for each in choose_endpoints(config)] if addresses else []
    except StartError as error:
        return [f"! StartError: {error}" + f" → {error.hint}" * bool(error.hint)]
    return [*_settings(config, given), *(f"= {note}" for note in config.notes), *there]


def _settings(config: Config, given: dict[str, list[str]]) -> list[str]:
    own = {"state_dir", "ts_config"} if given["+"] else {"state_dir"}
    said = {name: origin for name, origin in config.origins.items() if origin != "default" and name not in own}
    return [f"= {name}: {getattr(config, name)} ({origin})" for name, origin in sorted(said.items())]


def _shown(there: Endpoint) -> str:
    return f"http{'s' * there.tls}://{there.host}:{there.port} {' '.join(sorted(there.roles))}"
