"""Read the facts about the configuration, the running daemon, addresses and directories."""

import errno
import os
import re
import shlex
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.core.errors import StartError
from tsctl.doctor.facts import ConfiguredAddress, DoctorFacts, InstalledService, PathAccess, RunningDaemon, Space
from tsctl.doctor.machine import Machine, installed, space_of
from tsctl.errors import CliError, NoDaemon
from tsctl.service.files import is_ours, unit_folder

_START = re.compile(r"^ExecStart=(.*)$", re.MULTILINE)


def services(environment: Mapping[str, str]) -> Iterator[InstalledService]:
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


_TIMEOUT = 5.0  # seconds
_LISTEN = "0A"  # the state in /proc/net/tcp (kernel documentation, networking/proc_net_tcp)


def gather(given: Path | None, environment: Mapping[str, str]) -> DoctorFacts:
    """Return all facts; of a running daemon its own addresses and directories, else those it would have.

    Args:
        given: the control socket; None for the configured one.
    """
    config, invalid, remedy = _configured(given, environment)
    socket_path = config.socket if config is not None else given or paths.default_socket()
    daemon, status = _running(socket_path)
    machine = Machine()
    state_dir = Path(status["stateDir"]) if status else config.state_dir if config is not None else None
    store = status["modelStore"] if status else config.model_store if config is not None else None
    addresses: tuple[ConfiguredAddress, ...] = ()
    if status:
        addresses = tuple(_own(status))
    elif config is not None:
        try:
            addresses = tuple(_tried(config))
        except StartError as error:
            invalid, remedy = str(error), error.hint
    return DoctorFacts(
        user=user_of(daemon.pid),
        installation=installed(),
        daemon=daemon,
        invalid=invalid,
        invalid_remedy=remedy,
        socket=str(socket_path),
        processors=machine.processors(),
        memory=machine.memory(),
        gpus=machine.gpus(),
        shared_memory=machine.shared_memory(),
        limits=machine.limits(),
        addresses=addresses,
        accesses=tuple(_accesses(socket_path, state_dir, Path(store) if store else None)),
        clocks=machine.clocks(),
        disks=tuple(_disks(state_dir)),
        services=tuple(services(environment)),
    )


def user_of(pid: int) -> int:
    """Return the user of a daemon, which root may ask, too; of no daemon (0) this one, who would start it."""
    try:
        return os.stat(f"/proc/{pid}").st_uid if pid else os.getuid()
    except OSError:  # it has just gone
        return os.getuid()


def access_of(what: str, path: Path, needed: int, *, private: bool = False) -> PathAccess:
    """Return a path as this user sees it.

    Args:
        needed: as for `os.access`; where nothing is there, the nearest directory above must be writable.
    """
    there = path
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    exists = there == path
    try:
        status = there.lstat() if private else there.stat()
    except OSError:
        return PathAccess(what, str(path), exists, False, -1, 0, False, private)
    usable = os.access(there, needed if exists else os.W_OK | os.X_OK)
    directory = there.is_dir()
    return PathAccess(what, str(path), exists, directory, status.st_uid, status.st_mode & 0o1777, usable, private)


def listeners(table: str) -> dict[int, str]:
    """Return the port and the inode of each listening socket in a text of /proc/net/tcp or tcp6."""
    found = {}
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN:
            found[int(words[1].rpartition(":")[2], 16)] = words[9]
    return found


def holder_of(port: int, proc: Path = Path("/proc")) -> str:
    """Return the name and pid of the process that listens on a port; empty if this user cannot see that."""
    for table in ("tcp", "tcp6"):
        try:
            inode = listeners((proc / "net" / table).read_text()).get(port)
        except OSError:
            continue
        if inode is None:
            continue
        for link in proc.glob("[0-9]*/fd/*"):
            try:
                if os.readlink(link) == f"socket:[{inode}]":
                    process = link.parent.parent
                    return f"{(process / 'comm').read_text().strip()}, pid {process.name}"
            except OSError:
                continue
    return ""


def _configured(given: Path | None, environment: Mapping[str, str]) -> tuple[Config | None, str, str]:
    """Return the configuration of a daemon that starts here; without one, why it is invalid, and the remedy."""
    try:
        return resolve({"socket": str(given) if given else None}, environment), "", ""
    except StartError as error:
        return None, str(error), error.hint


def _running(socket_path: Path) -> tuple[RunningDaemon, dict[str, Any]]:
    try:
        status = DaemonClient(socket_path, timeout=_TIMEOUT).json("GET", "/tsctl/status")
    except NoDaemon:
        return RunningDaemon(), {}
    except CliError as error:
        return RunningDaemon(trouble=error.message), {}
    running = [(each.get("threads", 0), each["wanted"]) for each in status["models"]]
    return RunningDaemon(
        pid=status["pid"],
        version=status["version"],
        compiled=bool(status.get("compiled")),
        threads=tuple((threads // wanted, threads) for threads, wanted in running if threads and wanted),
    ), status


def _own(status: Mapping[str, Any]) -> Iterator[ConfiguredAddress]:
    for role in ("inference", "management", "metrics"):
        url = status.get(f"{role}Address")
        if url:
            yield ConfiguredAddress(f"--{role}-address", urlsplit(url).netloc, own=True)


def _tried(config: Config) -> Iterator[ConfiguredAddress]:
    """Yield each address after a bind, which listens to nothing and is undone at once."""
    for endpoint in choose_endpoints(config):
        address = f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
        refusal = ""
        try:
            family, kind, _, _, name = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(name)
        except OSError as error:
            refusal = errno.errorcode.get(error.errno or 0, "") or error.strerror or str(error)
        holder = holder_of(endpoint.port) if refusal == "EADDRINUSE" else ""
        yield ConfiguredAddress(endpoint.flag, address, refusal, holder)


def _accesses(socket_path: Path, state_dir: Path | None, store: Path | None) -> Iterator[PathAccess]:
    everything = os.R_OK | os.W_OK | os.X_OK
    private = socket_path == paths.default_socket()
    yield access_of("socket directory", socket_path.parent, everything, private=private)
    if state_dir is not None:
        yield access_of("state directory", state_dir, everything)
    if store is not None:
        yield access_of("model store", store, os.R_OK | os.X_OK)


def _disks(state_dir: Path | None) -> Iterator[Space]:
    """Yield the room for state and for temporary files; once if they share a file system."""
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        yield Space("no directory for temporary files can be written", 0, 0, None)
        temporary = None
    seen = set()
    for folder in filter(None, (state_dir, temporary)):
        # `os.path.exists` is false, too, for what this user may not see.
        there = next(each for each in (folder, *folder.parents) if os.path.exists(each))
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield space_of(there, str(folder))
