"""`python -m daemon`: arguments → Config → run.

Exit codes: 0 stopped as told, 1 could not start, 2 wrong arguments. With `--ready-fd N` one JSON
object is written to that descriptor: where the daemon listens, or why it does not.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daemon.config import resolve
from daemon.errors import StartError
from daemon.settings import SETTINGS


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m daemon", description="The tsctl daemon, in the foreground.")
    for setting in SETTINGS:
        parser.add_argument(setting.flag, metavar=setting.metavar, help=setting.help.replace("%", "%%"))
    parser.add_argument("--ready-fd", type=int, metavar="N", help="Write one JSON object there when listening.")
    parser.add_argument("--background", action="store_true", help="Log to files only.")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    given = parse_arguments(arguments)

    def tell(document: dict[str, Any]) -> None:
        if given.ready_fd is not None:
            with os.fdopen(given.ready_fd, "w") as pipe:
                json.dump(document, pipe)

    try:
        config = resolve(vars(given), os.environ, Path.cwd())  # it makes every path absolute
        if given.background:
            os.chdir("/")  # keep no directory busy
        # Here, so that a wrong setting is told without the cost of these.
        import uvloop

        from daemon.server import Daemon

        async def serve() -> None:
            await Daemon(config, foreground=not given.background).run(tell)

        uvloop.run(serve())
    except StartError as error:
        tell({"error": str(error), "hint": error.hint})
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the command line's own words
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
