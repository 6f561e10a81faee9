"""`python -m tsctl.container.health`: the health check of the image; exit code 0 while `/ping` answers 200.

The control socket is asked, so that the address of predictions, HTTPS and tokens do not matter.
"""

import sys

from tsctl.client import DaemonClient
from tsctl.errors import CliError


def main() -> int:
    try:
        DaemonClient(None).json("GET", "/ping")
    except CliError as error:
        print(error.message)  # noqa: T201 - `docker inspect` shows it
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
