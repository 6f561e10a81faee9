"""How many files of the product a commit modifies, and how many of them are outside its own folder of the shelf."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.lab.counter.tree import ROOMS

_OWN = re.compile(r"(?:daemon|handlers|tsctl|tests)/extensions/(\w+)/")


class Commit(NamedTuple):
    """A commit: its short hash, its subject, and the files that were there before, and that it changes or deletes."""

    number: str
    subject: str
    modified: tuple[str, ...]

    @property
    def product(self) -> list[str]:
        return [name for name in self.modified if name.startswith(ROOMS)]

    @property
    def extension(self) -> str:
        """The extension of whose files it modifies the most; empty if it modifies none of any."""
        own = Counter(found[1] for name in self.modified if (found := _OWN.match(name)))
        return min(own, key=lambda name: (-own[name], name), default="")

    @property
    def outside(self) -> list[str]:
        """The files of the product that are not in that extension's folders."""
        own = f"/extensions/{self.extension}/"
        return [name for name in self.product if not self.extension or own not in name]


def read_log(text: str) -> list[Commit]:
    """Return the commits of a `git log` in the format of `commits`."""
    found = []
    for part in text.split("\0")[1:]:
        head, *names = part.splitlines()
        number, _, subject = head.partition(" ")
        found.append(Commit(number, subject, tuple(name for name in names if name)))
    return found


def commits(tree: Path, *arguments: str) -> list[Commit]:
    """Return commits of a tree, the latest first.

    Args:
        arguments: of `git log`.

    Raises:
        OSError: there is no git.
        ValueError: git does not accept the arguments, or the tree is none of its own.
    """
    command = ["git", "-C", str(tree), "log", "--no-merges", "--diff-filter=MD", "--name-only", "--format=%x00%h %s"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return read_log(done.stdout)
