"""Whether a service's user can read a path, by the mode bits: even root has no capability there."""

import grp
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

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
