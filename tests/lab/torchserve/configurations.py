"""Each config.properties of the checkout: a real daemon starts with it, alone or with the flags that a page names."""

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.e2e.served import PATIENCE, TSCTL, Served
from tests.lab.torchserve.checkout import configurations
from tests.lab.torchserve.purposes import judge_refusal
from tests.lab.torchserve.start_lines import lines
from tests.lab.torchserve.verdict import Outcome, Row

# Flags of TorchServe that a page names for safety; those about models and places are the lab's own.
_KEPT = ("--disable-token-auth", "--disable-token", "--enable-model-api", "--ncs")
_WAY_FORWARD = "--disable-token-auth"
# What the file's addresses become: no port of this machine is taken, and nothing listens beyond it.
_LOOPBACK = {"management_address": "--management-address", "metrics_address": "--metrics-address"}
_TEXTS = {"SAGEMAKER_MODEL_STORE": "/tmp", "SAGEMAKER_HANDLER": "base_handler"}
_NUMBER = "60"  # of each other variable that a file names


def judge(root: Path, only: str = "") -> Iterator[Row]:
    """Yield a row for each file whose path contains `only`."""
    flags = documented_flags(root)
    for path in configurations(root):
        if only in str(path.relative_to(root)):
            yield judge_file(root, path, flags.get(path, ()))


def documented_flags(root: Path) -> dict[Path, tuple[str, ...]]:
    """Return, by file, the flags of the first start line that names it.

    A file is named relative to its page, to the root, or, by a path of a container, from the page beside it.
    """
    found: dict[Path, tuple[str, ...]] = {}
    for each in lines(root):
        named = named_config(each.words)
        kept = tuple(word for word in each.words if word in _KEPT)
        if named and kept:
            folder = each.page.parent
            for path in (folder / named, root / named, folder / Path(named).name):
                found.setdefault(path.resolve(), kept)
    return found


def named_config(words: Sequence[str]) -> str:
    """Return the value of `--ts-config`; empty without one."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option == "--ts-config":
            return value if equals else following
    return ""


def judge_file(root: Path, path: Path, flags: Sequence[str]) -> Row:
    """Return the row of one file."""
    name = str(path.relative_to(root))
    folders = [folder for folder in path.parents if folder.is_relative_to(root)][::-1]
    message = ""
    for given in dict.fromkeys(((), tuple(flags))):
        message = _try(path, given, folders)
        if not message:
            return Row(name, Outcome.WORKS, f"with {' '.join(given)}, as documented" if given else "")
    row = judge_refusal(name, message)
    if "needs a token" in message:
        again = _try(path, [*flags, _WAY_FORWARD], folders)
        row = judge_refusal(name, again) if again else row._replace(why=f"{message}; it starts with {_WAY_FORWARD}")
    return row


def _try(path: Path, flags: Sequence[str], folders: Sequence[Path]) -> str:
    """Start a daemon with the file; return why it did not start, empty if it did.

    The paths in a file are relative to the folder where its commands are typed, which no file says: each is tried.
    """
    message = ""
    for folder in folders:
        message = _start(path, flags, folder)
        if "cannot read" not in message:
            break
    return message


def _start(path: Path, flags: Sequence[str], folder: Path) -> str:
    """Start and stop a daemon with the file, in a folder; return why it did not start, empty if it did."""
    text = path.read_text(errors="replace")
    with tempfile.TemporaryDirectory(prefix="ts") as scratch:
        served = Served(Path(scratch))
        served.environment |= {name: _TEXTS.get(name, _NUMBER) for name in re.findall(r"\$\$(\w+)\$\$", text)}
        moved = [
            word
            for key, option in _LOOPBACK.items()
            if re.search(rf"^\s*{key}\s*=", text, re.MULTILINE)
            for word in (option, "127.0.0.1:0")
        ]
        command = [str(TSCTL), "start", "--ts-config", str(path), *moved, *flags]
        try:
            done = subprocess.run(
                command, env=served.environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE
            )
        finally:
            served.stop()
    return "" if done.returncode == 0 else said(done.stderr)


def said(text: str) -> str:
    """Return the error of a command's output as one line, without notes and warnings."""
    kept = [line for line in text.splitlines() if line and not line.startswith(("note:", "warning:"))]
    return " ".join(kept)
