"""The page over TLS, where browsers sign in with the operator's token."""

import re
import subprocess
from pathlib import Path
from typing import Any

from tests.certificate import make_certificate, needs_openssl
from tests.e2e.served import TSCTL
from tests.extensions.console.browser.conftest import Console


@needs_openssl
def test_a_person_signs_in_over_tls(chromium: Any, console: Console, tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("0123456789abcdef")
    options = ["--certificate", str(made.certificate), "--key", str(made.key), "--token-file", str(token)]
    context = chromium.new_context(ignore_https_errors=True)
    with subprocess.Popen(
        [TSCTL, "console", *options], env=console.served.environment, stdout=subprocess.PIPE, text=True
    ) as serving:
        try:
            assert serving.stdout is not None
            url = re.search(r"https://\S+", serving.stdout.readline())
            assert url is not None
            page = context.new_page()
            page.goto(url[0])
            page.get_by_label("Token").fill("a guess that is wrong")
            page.get_by_role("button", name="Sign in").click()
            page.get_by_text("That is not the token.").wait_for()
            page.get_by_label("Token").fill("0123456789abcdef")
            page.keyboard.press("Enter")

            page.get_by_role("row", name="finder").wait_for()
            page.goto(f"{url[0]}/#/models/finder/1.0")
            page.get_by_label("batch size", exact=True).fill("5")
            page.get_by_role("button", name="Apply").click()
            page.get_by_text("Applied.").wait_for()
        finally:
            context.close()
            serving.terminate()
