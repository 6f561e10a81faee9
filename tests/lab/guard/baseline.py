"""Which commit the working tree is compared with: the last release, or the recorded one while there is none."""

import subprocess
from pathlib import Path

from tests.places import ROOT

RECORDED = Path(__file__).with_name("baseline.txt")  # one line; not read any more when a release has a tag


class NoBaseline(Exception):
    """There is no commit to compare with; the message says how to get it."""


def choose(named: str, release: str, recorded: str) -> str:
    """Return the commit: the one that was asked for, else the last release, else the recorded one.

    Args:
        named, release, recorded: a commit or tag each; empty for none.

    Raises:
        NoBaseline: there is none of the three.
    """
    chosen = named or release or recorded.strip()
    if not chosen:
        raise NoBaseline(f"no release has a tag `v…`, and {RECORDED.name} is empty: name a commit with --baseline")
    return chosen


def last_release(folder: Path = ROOT) -> str:
    """Return the last tag `v…` before this commit; empty without one. A release is compared with the one before it."""
    describe = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]
    done = subprocess.run(describe, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def resolve(name: str, folder: Path = ROOT) -> str:
    """Return the full hash of a commit.

    Raises:
        NoBaseline: this clone does not have it.
    """
    parse = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(parse, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise NoBaseline(
            f"this clone has no commit `{name}`: fetch all of the history and the tags, or name another one"
        )
    return done.stdout.strip()
