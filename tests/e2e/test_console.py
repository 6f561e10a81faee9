"""`tsctl console` as a process: who gets in, and what is left when it ends."""

import http.client
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.served import TSCTL, Served


def test_the_token_is_in_a_file_of_the_user_alone_and_opens_the_page_once(shared: Served, tmp_path: Path) -> None:
    environment = shared.environment | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [TSCTL, "console", "--no-browser"], env=environment, stdout=subprocess.PIPE, text=True
    ) as console:
        try:
            assert console.stdout is not None
            url = re.search(r"http://\S+", console.stdout.readline())
            file = re.search(r"file://(\S+)", console.stdout.readline())
            assert url is not None and file is not None
            entrance = Path(file[1])
            token = re.search(r"token=([\w-]+)", entrance.read_text())
            assert token is not None
            connection = http.client.HTTPConnection(urlsplit(url[0]).netloc, timeout=shared.patience)

            def ask(target: str, **headers: str) -> http.client.HTTPResponse:
                connection.request("GET", target, headers=headers)
                answer = connection.getresponse()
                answer.read()
                return answer

            assert entrance.stat().st_mode & 0o777 == 0o600
            assert token[1] not in Path(f"/proc/{console.pid}/cmdline").read_text()
            assert ask("/api/status").status == 401
            entered = ask(f"/enter?token={token[1]}")
            cookie = (entered.getheader("Set-Cookie") or "").partition(";")[0]
            assert ask("/api/status", Cookie=cookie).status == 200
            assert ask("/api/models/echo", Cookie=cookie).status == 200
            assert ask("/api/models/echo", Cookie=cookie, Origin="http://evil.example").status == 403
            assert ask(f"/enter?token={token[1]}").status == 403
            connection.close()
        finally:
            console.send_signal(signal.SIGTERM)

    assert console.returncode == 0
    assert not entrance.parent.exists()
