"""Run TorchServe's own tests against tsctl: `python -m tests.lab.torchserve [--write | FILE…]`.

`TORCHSERVE_CHECKOUT` names a checkout of pytorch/serve; the ports 8080 to 8082 must be free. Exits with 1 if a case
fails that is not in the table of those that stay different on purpose. `--write` runs all files, and puts the counts
into docs/torchserve.md.
"""

import socket
import sys
import tempfile
from pathlib import Path

from tests.environments import Missing
from tests.lab.torchserve import report
from tests.lab.torchserve.checkout import checkout, commit
from tests.lab.torchserve.run import PORTS, Suites, not_run
from tests.lab.torchserve.table import FILES
from tests.lab.torchserve.verdict import Row


def main(arguments: list[str]) -> int:
    write = arguments == ["--write"]
    if write:
        arguments = []
    if unknown := set(arguments) - set(FILES):
        print(f"error: no file is called {', '.join(sorted(unknown))}; they are {', '.join(FILES)}", file=sys.stderr)
        return 2
    try:
        root = checkout()
        require_ports()
    except Missing as error:
        print(f"skipped: {error}")
        return 0
    judged: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(prefix="ts") as folder:
        try:
            suites = Suites(root, Path(folder))
        except Missing as error:
            print(f"skipped: {error}")
            return 0
        for file in arguments or FILES:
            judged[file] = suites.run(file)
            print(report.table({file: judged[file]}), flush=True)
    if not arguments:
        judged["not run"] = not_run()
        print(report.table({"not run": judged["not run"]}))
    print(report.table({"all": [row for rows in judged.values() for row in rows]}).splitlines()[-1])
    if write:
        report.write(judged, commit(root))
    return 1 if report.failed(judged) else 0


def require_ports() -> None:
    """Raises: Missing, if another program listens where the tests ask."""
    for port in PORTS.values():
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                raise Missing(f"port {port}, which TorchServe's tests ask, is in use") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
