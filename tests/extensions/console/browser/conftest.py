"""A daemon with models, `tsctl console` beside it, and a browser that came in by the redirect file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.served import Served
from tests.extensions.console.serving import serving

CHROMIUM = "/usr/bin/chromium"
MODELS = Path(__file__).parent / "models"
PATIENCE = 15_000  # milliseconds


class Console(NamedTuple):
    """The page's address, the file that leads there, and the daemon."""

    url: str
    entrance: str
    served: Served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console that nobody has entered yet."""
    served = Served(tmp_path_factory.mktemp("served"))
    served.start()
    try:
        for name in ("finder", "labels", "masks", "words"):
            served.tsctl("register", str(MODELS / f"{name}.py"), "--name", name)
        with serving(served) as found:
            yield Console(found.url, found.entrance.as_uri(), served)
    finally:
        served.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def entered(chromium: Any, console: Console) -> Iterator[Any]:
    """A context of the browser, in which a tab has entered and gives the secret to those that are opened."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(console.entrance)
    page.get_by_role("status").get_by_text("pid").wait_for()
    yield context
    page.goto("about:blank")  # closing a page just after it was led from a file can take Chromium for ever
    context.close()


@pytest.fixture
def page(entered: Any, console: Console) -> Iterator[Any]:
    """A page that shows the models; the test fails if the page complains, or a policy is broken."""
    page = entered.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    page.goto(console.url)
    yield page
    page.close()
    assert complaints == []
