"""Who gets into the console: the file, reloads, further tabs and browsers, and pages on other ports of the address."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.extensions.console.browser.conftest import PATIENCE, Console


def test_another_browser_stays_outside_until_it_opens_the_file(
    chromium: Any, console: Console, entered: Any, tmp_path: Path
) -> None:
    copy = tmp_path / "open.html"
    copy.write_text(Path(console.entrance.removeprefix("file://")).read_text())
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()

    page.goto(console.url)
    page.get_by_text("This page has closed").wait_for()
    page.goto(console.entrance)
    page.get_by_role("row", name="finder").wait_for()
    assert page.evaluate("location.href") == f"{console.url}/"  # without the token
    page.reload()
    page.get_by_role("row", name="finder").wait_for()
    assert context.cookies() == [] == entered.cookies()
    page.goto("about:blank")
    context.close()

    stranger = chromium.new_context()
    page = stranger.new_page()
    page.goto(copy.as_uri())  # whose token was used
    page.get_by_text("This page has closed").wait_for(timeout=PATIENCE)
    page.goto("about:blank")
    stranger.close()


def test_a_tab_that_has_closed_goes_on_when_another_one_enters(chromium: Any, console: Console) -> None:
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    closed, page = context.new_page(), context.new_page()
    closed.goto(console.url)
    closed.get_by_text("This page has closed").wait_for()

    page.goto(console.entrance)

    closed.get_by_role("row", name="finder").wait_for()
    page.goto("about:blank")
    context.close()


def test_no_other_port_of_the_address_gets_the_secret(chromium: Any, console: Console, entered: Any) -> None:
    """Another user's page, on another port: what the browser sends there, and what a script there can read."""
    heard: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>hostile</title>")

        def log_message(self, *_: object) -> None:
            """Keep silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = entered.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        stored = page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]")
        told = page.evaluate(
            """new Promise((resolve) => {
                const channel = new BroadcastChannel("tsctl-console");
                channel.onmessage = ({ data }) => resolve(data);
                channel.postMessage({ wanted: true });
                setTimeout(resolve, 1000, "nothing");
            })"""
        )
        asked = page.evaluate(f"fetch('{console.url}/api/status').then(() => 'read', () => 'refused')")
        page.close()
        server.shutdown()

    assert heard and not any("Cookie" in each or "Authorization" in each for each in heard)
    assert (stored, told, asked) == ([0, 0, ""], "nothing", "refused")
