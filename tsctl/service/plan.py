"""The facts of a service: its program and settings, the addresses of its sockets, its user, its directories."""

import grp
import os
import pwd
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import tsctl
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.endpoints import Endpoint, choose_endpoints
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.tables import SETTINGS
from tsctl.errors import CliError


@dataclass(frozen=True, slots=True)
class Account:
    """The user of a service.

    Attributes:
        uid: None for a dynamic user, who owns nothing.
    """

    uid: int | None = None
    groups: frozenset[int] = frozenset()


def account_of(name: str | None) -> Account:
    """Return the account of a user's name; the dynamic user for None.

    Raises:
        CliError: there is no such user.
    """
    if name is None:
        return Account()
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise CliError(f"there is no user `{name}`", f"make one: `useradd --system {name}`") from None
    return Account(found.pw_uid, frozenset(os.getgrouplist(name, found.pw_gid)))


def closed_at(path: Path, account: Account) -> Path | None:
    """Return the first file or directory on the way to a path that the account cannot read or enter; None without.

    A path is followed as written, and through its links.
    """
    for way in dict.fromkeys((path, path.resolve())):
        for each in (*reversed(way.parents), way):
            status = each.stat()
            needed = stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
            if not _granted(status, needed, account):
                return each
    return None


def group_exists(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _granted(status: os.stat_result, needed: int, account: Account) -> bool:
    """Return whether a mode grants `needed`, given as a bit of the others, to an account."""
    if status.st_uid == account.uid:
        needed <<= 6
    elif status.st_gid in account.groups:
        needed <<= 3
    return bool(status.st_mode & needed)


_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))  # of ProtectHome=, systemd.exec(5)
_OWN = (Path("/tmp"), Path("/var/tmp"))  # of PrivateTmp=
_READ = tuple(setting.name for setting in SETTINGS if setting.opens == "read")
_WRITTEN = tuple(setting.name for setting in SETTINGS if setting.opens == "write")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """The facts that the units are written from.

    Attributes:
        name: of the units, without `.service`.
        of_user: a service of the user's own manager, `systemctl --user`.
        run_as: the system user; None for a dynamic one.
        program: the words that run `tsctl`.
        arguments: of `tsctl run`, without the socket and the state directory.
        control: the path of the control socket; with specifiers of systemd.
        state: the state directory if the user chose one; None for the service manager's.
        addresses: HOST:PORT of each socket.
        grace: seconds that a stop waits for running requests.
        writable: directories that the daemon writes besides its own.
        homes: whether something that is read lies in a home directory.
        groups: further groups, for devices.
    """

    name: str
    of_user: bool
    run_as: str | None
    program: Sequence[str]
    arguments: Sequence[str]
    control: str
    state: Path | None
    addresses: Sequence[str]
    grace: float
    writable: Sequence[Path] = ()
    homes: bool = False
    groups: Sequence[str] = ()

    @property
    def unit(self) -> str:
        return f"{self.name}.service"

    @property
    def socket_unit(self) -> str | None:
        """The file name of the socket unit; None for a daemon without a TCP address."""
        return f"{self.name}.socket" if self.addresses else None


def make_plan(
    flags: Mapping[str, str | None], arguments: Sequence[str], *, name: str, of_user: bool, run_as: str | None
) -> ServicePlan:
    """Check the settings of a service, and return its facts.

    Args:
        flags: the daemon's settings by name. Variables of this shell do not count: the service has an environment of
            its own.
        arguments: the same as words.

    Raises:
        CliError: a setting is invalid, or the service's user cannot use a path.
    """
    try:
        # Paths that every user has: the real ones of the service are known to systemd only.
        config = resolve({"socket": f"/run/{name}/control.sock", "state_dir": f"/var/lib/{name}"} | _given(flags), {})
        endpoints = choose_endpoints(config)
    except StartError as error:
        raise CliError(str(error), error.hint) from None
    state = config.state_dir if flags.get("state_dir") else None
    writable = [
        *(path for field in _WRITTEN if (path := getattr(config, field)) is not None),
        *([state] if state else []),
    ]
    read = [path for field in _READ if (path := getattr(config, field)) is not None]
    program = _program()
    code = [Path(program[0]), *_installed()]
    if not of_user:
        _check(account_of(run_as), [*code, *read], writable, config, flags)
    control = f"%t/{name}/control.sock" if not flags.get("socket") else str(config.socket).replace("%", "%%")
    return ServicePlan(
        name=name,
        of_user=of_user,
        run_as=run_as,
        program=program,
        arguments=[each for each in arguments if not each.startswith(("--socket=", "--state-dir="))],
        control=control,
        state=state,
        addresses=[_address(each) for each in endpoints],
        grace=config.grace,
        writable=writable,
        homes=any(_within(path.resolve(), _HOMES) or _within(path, _HOMES) for path in (*code, *read, *writable)),
        groups=["render"] if Path("/dev/kfd").exists() and group_exists("render") else [],
    )


def _given(flags: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in flags.items() if value is not None}


def _program() -> list[str]:
    """Return the words that run this `tsctl`, whatever the working directory and PATH."""
    script = Path(sys.executable).parent / "tsctl"
    return [str(script)] if script.exists() else [sys.executable, "-P", "-m", "tsctl.cli"]


def _installed() -> list[Path]:
    """Return the places of this installation: its interpreter, its environment, its modules."""
    return [Path(sys.executable), Path(sys.prefix), Path(tsctl.__file__)]


def _address(endpoint: Endpoint) -> str:
    if not endpoint.port:
        raise CliError(f"`{endpoint.flag}` has port 0, and a socket unit needs a number", "name a port, such as 8080")
    host = "127.0.0.1" if endpoint.host == "localhost" else endpoint.host
    try:
        ip_address(host)
    except ValueError:
        raise CliError(
            f"`{host}` is a name, and systemd listens at numbers only", f"write the address in `{endpoint.flag}`"
        ) from None
    return f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"


def _check(
    account: Account, read: Sequence[Path], writable: Sequence[Path], config: Config, flags: Mapping[str, str | None]
) -> None:
    """Check that a system service's user can use these paths.

    Raises:
        CliError: one is closed to that user, does not exist, or is in a directory that the service has its own of.
    """
    given = [*read, *writable, *([config.socket] if flags.get("socket") else [])]
    for path in given:
        if _within(path, _OWN):
            raise CliError(f"the service cannot see `{path}`: it has a /tmp of its own", "use another directory")
    for path in writable:
        if not path.is_dir():
            raise CliError(
                f"no directory at `{path}`, which the service is to write", "make it, for the service's user"
            )
    for path in read:
        closed = closed_at(path, account)
        if closed is not None:
            raise CliError(
                f"the service's user cannot read `{path}`: `{closed}` is closed to others",
                "put it where all can read, such as below /opt or /srv, or name its owner with `--run-as`",
            )


def _within(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
