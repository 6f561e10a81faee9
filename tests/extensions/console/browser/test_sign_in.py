"""The page over TLS, where browsers sign in with the operator's token."""

from pathlib import Path
from typing import Any

from tests.certificate import needs_openssl
from tests.extensions.console.browser.conftest import Console
from tests.extensions.console.serving import TOKEN, serving_tls


@needs_openssl
def test_a_person_signs_in_over_tls(chromium: Any, console: Console, tmp_path: Path) -> None:
    context = chromium.new_context(ignore_https_errors=True)
    with serving_tls(console.served, tmp_path) as (_, url):
        try:
            page = context.new_page()
            page.goto(url)
            page.get_by_label("Token").fill("a guess that is wrong")
            page.get_by_role("button", name="Sign in").click()
            page.get_by_text("That is not the token.").wait_for()
            page.get_by_label("Token").fill(TOKEN)
            page.keyboard.press("Enter")

            page.get_by_role("row", name="finder").wait_for()
            page.goto(f"{url}/#/models/finder/1.0")
            page.get_by_label("batch size", exact=True).fill("5")
            page.get_by_role("button", name="Apply").click()
            page.get_by_text("Applied.").wait_for()
        finally:
            context.close()
