"""Photographs, recordings, pages and texts: the bodies of requests. They come with packages, or are drawn here."""

import io
import wave
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.lab.real.packages import recordings
from tests.places import ROOT

RATE = 16_000  # of live recordings: samples a second
PIECE = 512  # samples
SENTENCES = (
    "A cat.",
    "The weather is lovely today.",
    "It's so sunny outside that everybody has gone to the lake!",
    "He drove to the stadium.",
    "My card was charged twice for the same purchase, and nobody answers the telephone.",
    "Wie ist das Wetter morgen?",
    "Batches of texts with different lengths are padded to the longest of them. " * 4,
    "The model store is a directory of archives, and the snapshot is the registry on disk. " * 8,
)


def _within(package: str, *names: str) -> list[bytes]:
    """Return files of a package, without importing it; those that this version of it has, none without it."""
    found = find_spec(package)
    files = [] if found is None or found.origin is None else [Path(found.origin).parent / name for name in names]
    return [file.read_bytes() for file in files if file.is_file()]


@cache
def photographs() -> list[bytes]:
    """Photographs of scikit-learn, matplotlib and scikit-image: JPEG and PNG, RGB and grey, 3 to 1 000 kB."""
    of_skimage = ("astronaut", "chelsea", "coffee", "motorcycle_left", "camera")
    return [
        *_within("sklearn", "datasets/images/china.jpg", "datasets/images/flower.jpg"),
        *_within("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
        *_within("skimage", "data/rocket.jpg", *(f"data/{name}.png" for name in of_skimage)),
    ]


def pages() -> list[bytes]:
    """Two pages of scikit-image, and one that is drawn."""
    drawn = Image.new("RGB", (480, 120), "white")
    ImageDraw.Draw(drawn).text((20, 40), "Invoice 4711, 17 May", "black", font_size=32)
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return [*_within("skimage", "data/page.png", "data/text.png"), file.getvalue()]


def texts() -> list[bytes]:
    return [sentence.encode() for sentence in SENTENCES]


def files() -> list[bytes]:
    """Files of many types."""
    named = ("README.md", "Makefile", "pyproject.toml", "LICENSE", "daemon/paths.py", "docs/pictures/terminal.svg")
    return [*((ROOT / name).read_bytes() for name in named), *photographs()[:2], b"{}", b""]


def clips() -> list[bytes]:
    """Recordings of a voice that names loudspeakers, a second and a half each, 48 kHz."""
    return [file.read_bytes() for file in recordings()[:4]]


def moments() -> list[bytes]:
    """A tenth and a quarter of a second of each recording, as WAV files."""
    return [_cut(file, start, length) for start, length in ((0.3, 0.1), (0.5, 0.25)) for file in recordings()[:2]]


def melodies() -> list[bytes]:
    """Two melodies, of three notes each, as WAV files: what a synthesiser would play."""
    return [_sung((440.0, 494.0, 523.0)), _sung((262.0, 330.0, 392.0))]


def live() -> list[list[NDArray[np.float32]]]:
    """Eight live recordings, each as pieces of 32 ms: float32, shape (512,), in [-1, 1]."""
    found = recordings()
    streams = []
    for number in range(8):
        with wave.open(str(found[number % len(found)])) as file:
            step = file.getframerate() // RATE
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)[:: step * file.getnchannels()]
        sound = samples[number * 100 :].astype(np.float32) / np.float32(32768)
        streams.append([sound[at : at + PIECE] for at in range(0, len(sound) - PIECE + 1, PIECE)])
    return streams


def _cut(file: Path, start: float, length: float) -> bytes:
    with wave.open(str(file)) as read:
        read.setpos(int(start * read.getframerate()))
        samples = read.readframes(int(length * read.getframerate()))
        return _written(samples, read.getframerate(), read.getnchannels())


def _sung(notes: tuple[float, ...], rate: int = 22_050) -> bytes:
    time = np.arange(int(0.5 * rate)) / rate
    waves = [sum(np.sin(2 * np.pi * note * each * time) / each for each in (1, 2, 3)) for note in notes]
    sound = np.concatenate([one * np.exp(-3 * time) for one in waves])
    return _written((sound / np.abs(sound).max() * 30_000).astype(np.int16).tobytes(), rate, 1)


def _written(samples: bytes, rate: int, channels: int) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return made.getvalue()
