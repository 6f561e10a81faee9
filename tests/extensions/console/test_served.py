"""`tsctl console` as a process: who gets in, and what is left when it ends."""

import http.client
import json
import re
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.certificate import needs_openssl
from tests.e2e.served import Served
from tests.extensions.console.serving import TOKEN, serving, serving_tls


@pytest.mark.thin
def test_a_token_is_in_a_file_of_the_user_alone_and_opens_the_page_once(shared: Served, tmp_path: Path) -> None:
    with serving(shared, TMPDIR=str(tmp_path)) as console:
        entrance = console.entrance
        token = re.search(r"/#enter=([\w-]+)", entrance.read_text())
        assert token is not None
        place = urlsplit(console.url).netloc
        connection = http.client.HTTPConnection(place, timeout=shared.patience)

        def ask(target: str, body: str | None = None, **headers: str) -> tuple[int, bytes]:
            headers = {"Origin": console.url} | headers
            connection.request("GET" if body is None else "POST", target, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert entrance.stat().st_mode & 0o777 == 0o600
        assert token[1] not in Path(f"/proc/{console.process.pid}/cmdline").read_text()
        assert ask("/api/status")[0] == 401
        status, body = ask("/enter", token[1])
        known = {"Authorization": f"Bearer {json.loads(body)['secret']}"}
        assert status == 200
        assert ask("/api/status", **known)[0] == 200
        assert ask("/api/models/echo", **known)[0] == 200
        assert ask("/api/models/echo", **known, Origin="http://evil.example")[0] == 403
        assert ask("/enter", token[1])[0] == 403
        assert token[1] not in entrance.read_text()
        connection.close()

    assert not entrance.parent.exists()


@needs_openssl
def test_over_tls_browsers_sign_in_with_the_operators_token(shared: Served, tmp_path: Path) -> None:
    with serving_tls(shared, tmp_path) as (made, url):
        place = urlsplit(url).netloc
        trusting = ssl.create_default_context(cafile=str(made.certificate))
        silent = socket.create_connection(place.split(":"), shared.patience)  # type: ignore[arg-type]
        connection = http.client.HTTPSConnection(place, timeout=shared.patience, context=trusting)

        def ask(method: str, target: str, body: str | None = None, **headers: str) -> tuple[int, bytes]:
            connection.request(method, target, body, {"Origin": url} | headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert ask("GET", "/api/live")[0] == 401
        assert ask("POST", "/enter", TOKEN[:-1] + "e")[0] == 403
        assert ask("POST", "/enter", TOKEN, Origin="https://evil.example")[0] == 403
        _, body = ask("POST", "/enter", TOKEN)
        known = {"Authorization": f"Bearer {json.loads(body)['secret']}"}
        assert ask("GET", "/api/live", None, **known)[0] == 200
        assert ask("GET", "/api/models/echo", None, **known)[0] == 200
        connection.close()
        silent.close()  # a client without a handshake kept nobody waiting
        plain = http.client.HTTPConnection(place, timeout=shared.patience)
        plain.request("GET", "/")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
        plain.close()
