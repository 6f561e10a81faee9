"""`python -m tsctl.daemon`: arguments → Config → run.

Exit codes: 0 stopped as told, 1 could not start, 2 wrong arguments. With `--ready-fd N` one JSON
object is written to that descriptor: where the daemon listens, or the reason why not. With `--parent-fd N`
the daemon stops when the other end of that pipe is closed (lifecycle/parent.py). With `--inherit N`,
which only a running daemon passes, this daemon replaces that one. A daemon in the foreground that has been
replaced stays as a stand-in (upgrade/shim.py), and has the exit code of the last one.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import DaemonError, StartError
from tsctl.daemon.extension import Extension
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import SETTINGS


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tsctl.daemon", description="The tsctl daemon, in the foreground.")
    for setting in SETTINGS:
        parser.add_argument(setting.flag, metavar=setting.metavar, help=setting.help.replace("%", "%%"))
    parser.add_argument("--ready-fd", type=int, metavar="N", help="Write one JSON object there when listening.")
    parser.add_argument("--parent-fd", type=int, metavar="N", help="Stop when the other end of that pipe is closed.")
    parser.add_argument("--inherit", type=int, metavar="N", help="Replace the daemon at the other end of that socket.")
    parser.add_argument("--background", action="store_true", help="Log to files only.")
    return parser.parse_args(arguments)


def launch_arguments(given: argparse.Namespace) -> list[str]:
    """Return the arguments that start the same daemon once more."""
    values = [(setting.flag, getattr(given, setting.name)) for setting in SETTINGS]
    said = [f"{flag}={value}" for flag, value in values if value is not None]
    if given.parent_fd is not None:
        said.append(f"--parent-fd={given.parent_fd}")
    return [*said, "--background"] if given.background else said


def main(arguments: Sequence[str], extensions: Sequence[Extension] = EXTENSIONS) -> int:
    """Run a daemon to its end; return the exit code.

    Args:
        extensions: what it can do beside the core.
    """
    given = parse_arguments(arguments)
    predecessor = None

    def tell(document: dict[str, Any]) -> None:
        if given.ready_fd is not None:
            with os.fdopen(given.ready_fd, "w") as pipe:
                json.dump(document, pipe)

    try:
        if given.inherit is not None:
            from tsctl.daemon.lifecycle.upgrade.new import Predecessor

            predecessor = Predecessor(given.inherit)
        if given.parent_fd is not None:
            from tsctl.daemon.lifecycle.parent import check_parent

            check_parent(given.parent_fd)
        directory = os.getcwd()
        config = resolve(vars(given), os.environ, Path(directory))  # makes every path absolute
        if given.background:
            os.chdir("/")  # keep no directory busy
        # Here, so that a wrong setting is reported without the cost of these imports.
        from tsctl.daemon.lifecycle.first_template import start_early

        template = start_early(config, replacing=predecessor is not None)
        from tsctl.daemon.http.bounds.trimming import return_memory

        return_memory()
        import uvloop

        from tsctl.daemon.lifecycle.activation import take_passed
        from tsctl.daemon.lifecycle.notify import Notifier, notifier_of
        from tsctl.daemon.lifecycle.upgrade.shim import become, hold_signals
        from tsctl.daemon.lifecycle.upgrade.successor import Launch
        from tsctl.daemon.server.daemon import Daemon

        supervised = not given.background and not (predecessor is not None and predecessor.inheritance.stand_in)
        # NOTIFY_SOCKET in the background, or below another program, is that of a service around us.
        managed = not given.background and given.parent_fd is None
        notifier = notifier_of(os.environ, os.getpid()) if managed else Notifier()
        passed = take_passed(os.environ, os.getpid()) if managed else []
        if notifier.watchdog:
            import faulthandler

            faulthandler.enable()  # SIGABRT, of a watchdog that was not fed, then shows where the loop stands
        launch = Launch(launch_arguments(given), directory, supervised, given.parent_fd, notifier, passed, template)

        async def serve() -> int | None:
            daemon = Daemon(config, launch, extensions, foreground=not given.background, predecessor=predecessor)
            await daemon.run(tell)
            if daemon.successor is not None and supervised:
                hold_signals()
                return daemon.successor
            return None

        successor = uvloop.run(serve())
        if successor is not None:
            return become(successor, str(paths.pid_file(config.socket)))
    except (StartError, DaemonError) as error:
        hint = error.hint if isinstance(error, StartError) else ""
        tell({"error": str(error), "hint": hint})
        if predecessor is not None:
            predecessor.fail(error)
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the command line's own words
        if hint:
            print(f"hint: {hint}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
