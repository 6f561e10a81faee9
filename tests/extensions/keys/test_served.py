"""Clients with keys at a real daemon, as curl sees it."""

import shutil
import urllib.request

import pytest

from tests.e2e.served import Served, eventually
from tests.e2e.test_security import curl
from tests.kit.shelf import needs

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs the program curl")


@needs("prometheus")
def test_clients_with_keys_are_kept_to_their_rates_and_counted_by_name(idle: Served) -> None:
    keys = idle.folder / "keys.toml"
    mobile = idle.tsctl("key", "mobile", "--keys-file", str(keys), "--rate", "0.01", "--burst", "2").strip()
    idle.start("--keys-file", str(keys), "--metrics-address", "127.0.0.1:0")
    idle.register("echo")
    url = f"{idle.url}/predictions/echo"

    def ask(key: str) -> int:
        return curl(url, f"Authorization: Bearer {key}", "--data", "1")[0]

    assert curl(url, "--data", "1")[0] == 401
    assert [ask(mobile), ask(mobile), ask(mobile), ask("guess")] == [200, 200, 429, 403]
    web = idle.tsctl("key", "web", "--keys-file", str(keys)).strip()
    eventually(lambda: ask(web) == 200, "the new client is known")

    with urllib.request.urlopen(f"{idle.status['metricsAddress']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("tsctl_client_requests_total{")]
    assert 'tsctl_client_requests_total{client="mobile",code="200"} 2.0' in counted
    assert 'tsctl_client_requests_total{client="mobile",code="429"} 1.0' in counted
    assert "2 clients" in idle.tsctl("events")

    keys.write_text("[[client")
    eventually(lambda: "keys-invalid" in idle.tsctl("events", "--json"), "the event is told, without a request")
    assert ask(web) == 200
