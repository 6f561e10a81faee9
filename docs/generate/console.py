"""The pictures of `tsctl console`: `python -m docs.generate.console` takes them in the browser of `make browser`.

Writes docs/pictures/console.webp and docs/pictures/playground.webp. The models are those of the browser's tests; the
numbers are those of the machine that draws.
"""

import io
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from tests.browser.conftest import CHROMIUM, MODELS
from tests.e2e.served import TSCTL, Served

PICTURES = Path(__file__).parents[1] / "pictures"
SIZE = {"width": 1080, "height": 720}
SECONDS = 25  # of load, for the charts


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tsctl-") as name:
        served = Served(Path(name))
        served.start()
        try:
            for model in ("finder", "labels"):
                served.tsctl("register", str(MODELS / f"{model}.py"), "--model-name", model)
            with subprocess.Popen(
                [TSCTL, "console", "--no-browser"], env=served.environment, stdout=subprocess.PIPE, text=True
            ) as console:
                assert console.stdout is not None
                url, entrance = (console.stdout.readline() for _ in range(2))
                try:
                    photograph(served, url.split()[4], entrance.split()[-1], Path(name))
                finally:
                    console.terminate()
        finally:
            served.stop()


def photograph(served: Served, url: str, entrance: str, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(entrance)
        page.wait_for_url(f"{url}/")
        page.goto(f"{url}/#/models/labels/1.0")
        ended = threading.Event()
        clients = [threading.Thread(target=ask, args=(served, ended)) for _ in range(6)]
        for client in clients:
            client.start()
        page.wait_for_timeout(SECONDS * 1000)
        save(page, "console")
        ended.set()
        for client in clients:
            client.join()
        draw(folder / "pets.png")
        page.goto(f"{url}/#/playground/finder/1.0")
        page.set_input_files("input[type=file]", str(folder / "pets.png"))
        page.get_by_role("button", name="Send").click()
        page.locator("canvas").wait_for()
        save(page, "playground")
        browser.close()


def ask(served: Served, ended: threading.Event) -> None:
    while not ended.wait(0.03):
        served.ask("/predictions/labels", b"hello", **{"Content-Type": "text/plain"})


def draw(path: Path) -> None:
    """Draw a picture with two things in it."""
    picture = Image.new("RGB", (640, 360), "#bcccdc")
    drawing = ImageDraw.Draw(picture)
    drawing.ellipse((80, 85, 310, 315), fill="#b88860")
    drawing.ellipse((365, 120, 565, 280), fill="#776655")
    picture.save(path)


def save(page: Any, name: str) -> None:
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(PICTURES / f"{name}.webp", quality=82, method=6)


if __name__ == "__main__":
    main()
