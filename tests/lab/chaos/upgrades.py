"""Many upgrades in a row under load: no request fails, no answer is wrong, nothing is left behind.

    python -m tests.lab.chaos.upgrades [--count 50] [--grace 3] [--tls] [--templates]

Every tenth new daemon is killed while it loads, and that upgrade must fail and harm nobody.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from daemon.marfile import Packing, write_archive
from tests.certificate import make_certificate
from tests.e2e.served import ARCHIVES, TSCTL, Served, eventually
from tests.lab.chaos.clients import Clients, Counts

MARK = "UPGRADES_MARK"


def serve(folder: Path, *, tls: bool = False, templates: bool = False) -> Served:
    """Start a daemon with the models that the clients ask; whatever it starts carries a mark in its environment."""
    served = Served(folder)
    served.environment |= {MARK: str(folder), "TSCTL_TEMPLATE": str(templates).lower()}
    options: tuple[str, ...] = ()
    if tls:
        made = make_certificate(folder)
        options = ("--certificate-file", str(made.certificate), "--private-key-file", str(made.key))
    served.start(*options)
    for name, options in (("answer", ("--batch-size", "4", "--max-delay", "1")), ("stream", ())):
        packing = Packing(model_name=name, version="1.0", handler=str(ARCHIVES / "answer.py"))
        served.tsctl("register", write_archive(packing, served.store).name, "--workers", "2", *options)
    return served


def clients_of(served: Served, grace: float) -> Clients:
    return Clients(served.status["inferenceAddress"], served.environment["TSCTL_SOCKET"], grace)


def upgrade(served: Served, grace: float) -> Any:
    return json.loads(served.tsctl("upgrade", "--grace", str(grace), "--json"))


def upgrade_and_kill(served: Served) -> None:
    """Ask for an upgrade, and kill the new daemon as soon as it is there."""
    before = set(marked(served))
    old = served.pid
    asking = subprocess.Popen([TSCTL, "upgrade"], env=served.environment, stderr=subprocess.PIPE, text=True)
    found: list[int] = []

    def appeared() -> bool:
        found[:] = [pid for pid in set(marked(served)) - before if "--inherit=" in command_of(pid)]
        return bool(found) or asking.poll() is not None

    eventually(appeared, "a new daemon starts")
    if found and asking.poll() is None:
        os.kill(found[0], signal.SIGKILL)
    said = asking.communicate()[1]
    assert asking.returncode == 1, said
    assert "Upgrade failed; the running daemon stays: the new daemon was killed by SIGKILL" in said, said
    assert served.pid == old


def marked(served: Served) -> list[int]:
    """The processes that the daemon, or one that has replaced it, has started, and itself."""
    mark = f"{MARK}={served.folder}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def table(counts: Counts, upgrades: int, killed: int, seconds: float, took: list[float]) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.answered.items()))
    return "\n".join((
        f"upgrades            {upgrades}, and {killed} that were killed on the way, in {seconds:.0f} s",
        f"an upgrade took     {min(took):.2f} to {max(took):.2f} s" if took else "",
        f"requests            {counts.answered.total()} ({kinds})",
        f"slowest answer      {counts.slowest:.2f} s",
        f"told to close       {counts.closings}",
        f"failed or wrong     {len(counts.wrong)}",
        *counts.wrong[:20],
    ))  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--grace", type=float, default=3.0, help="seconds")
    parser.add_argument("--tls", action="store_true", help="speak https")
    parser.add_argument("--templates", action="store_true", help="fork workers from a process that has imported torch")
    given = parser.parse_args(arguments)
    took: list[float] = []
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        served = serve(Path(folder), tls=given.tls, templates=given.templates)
        began = time.monotonic()
        try:
            with clients_of(served, given.grace) as clients:
                for number in range(given.count):
                    if number % 10 == 9:
                        upgrade_and_kill(served)
                        killed += 1
                    took.append(upgrade(served, given.grace)["seconds"])
                    print(f"\r{number + 1} of {given.count}", end="", flush=True, file=sys.stderr)
            print(file=sys.stderr)
            seconds = time.monotonic() - began
        finally:
            served.stop()
        print(table(clients.counts, len(took), killed, seconds, took))
        eventually(lambda: not marked(served), f"all processes end: {[command_of(pid) for pid in marked(served)]}")
        print("left behind         nothing")
    return 1 if clients.counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
