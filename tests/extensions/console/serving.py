"""`tsctl console` beside a daemon."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.certificate import Certificate, make_certificate
from tests.e2e.served import TSCTL, Served

TOKEN = "0123456789abcdef"


class Serving(NamedTuple):
    """A console that serves: its address, the file that leads there if it is no certificate's, and its process."""

    url: str
    entrance: Path
    process: subprocess.Popen[str]


@contextmanager
def serving(served: Served, *options: str, **environment: str) -> Iterator[Serving]:
    """Serve a console of this daemon until the end, which is to be a good one."""
    command = [TSCTL, "console", *(options or ["--no-browser"])]
    with subprocess.Popen(command, env=served.environment | environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"https?://\S+", process.stdout.readline())
            assert url is not None
            entrance = "" if options else process.stdout.readline().split("file://")[1].strip()
            yield Serving(url[0], Path(entrance), process)
        finally:
            process.terminate()
    assert process.returncode == 0


@contextmanager
def serving_tls(served: Served, folder: Path) -> Iterator[tuple[Certificate, str]]:
    """Serve it over TLS to who has `TOKEN`; give the certificate and the address."""
    made = make_certificate(folder)
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    options = ["--certificate", str(made.certificate), "--key", str(made.key), "--token-file", str(token)]
    with serving(served, *options) as console:
        yield made, console.url
