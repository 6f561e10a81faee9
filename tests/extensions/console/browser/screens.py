"""The pictures of `tsctl console`, in both schemes: `python -m tests.lab screens`, in the browser of `make browser`.

Writes docs/pictures/console-VIEW-SCHEME.png. The models are those of the tests: `scorer` takes 8 ms a batch and
0.4 ms a request. The numbers are those of the machine that draws.
"""

import io
import random
import tempfile
import threading
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from tests.e2e.served import Served
from tests.extensions.console.browser.conftest import CHROMIUM, MODELS
from tests.extensions.console.serving import serving
from tests.places import ROOT

PICTURES = ROOT / "docs/pictures"
SIZE = {"width": 1080, "height": 760}
SECONDS = 45  # of load, for the charts
LONG = 300.0  # seconds that `tsctl tune` may take


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tsctl-") as name:
        served = Served(Path(name))
        served.start()
        try:
            served.tsctl("register", str(MODELS / "finder.py"), "--name", "finder")
            served.register("linear", "--batch-size", "1", "--max-delay", "20", name="scorer")
            (served.folder / "input").write_bytes(b"x")
            load = ("--clients", "16", "--seconds", "0.5")
            done = served.run("tune", "scorer", "input", *load, patience=LONG)
            assert done.returncode == 0, done.stderr
            served.tsctl("set", "scorer", "--batch-size", "8")
            with serving(served) as console:
                photograph(served, console.url, console.entrance.as_uri(), Path(name))
        finally:
            served.stop()


def photograph(served: Served, url: str, entrance: str, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(entrance)
        page.get_by_role("status").get_by_text("pid").wait_for()
        page.goto(f"{url}/#/models/scorer/1.0")
        ended = threading.Event()
        clients = [threading.Thread(target=ask, args=(served, ended)) for _ in range(6)]
        for client in clients:
            client.start()
        page.wait_for_timeout(SECONDS * 1000)
        save(page, "models")
        ended.set()
        for client in clients:
            client.join()
        draw(folder / "pets.png")
        page.goto(f"{url}/#/playground/finder/1.0")
        page.set_input_files("input[type=file]", str(folder / "pets.png"))
        page.get_by_role("button", name="Send").click()
        page.locator("canvas").wait_for()
        save(page, "playground")
        page.goto(f"{url}/#/tune")
        page.locator(".points").wait_for()
        save(page, "tune")
        browser.close()


def ask(served: Served, ended: threading.Event) -> None:
    """Be one client: a request after the other, with pauses, and now and then one that fails."""
    pauses = random.Random(threading.get_ident())
    while not ended.wait(pauses.expovariate(60)):
        served.ask("/predictions/scorer", b"fail" if pauses.random() < 0.005 else b"x")


def draw(path: Path) -> None:
    """Draw a picture with two things in it."""
    picture = Image.new("RGB", (640, 360), "#bcccdc")
    drawing = ImageDraw.Draw(picture)
    drawing.ellipse((80, 85, 310, 315), fill="#b88860")
    drawing.ellipse((365, 120, 565, 280), fill="#776655")
    picture.save(path)


def save(page: Any, view: str) -> None:
    """Write the picture of what the window shows, in each scheme."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(1500)
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        shot.save(PICTURES / f"console-{view}-{scheme}.png", optimize=True)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main()
