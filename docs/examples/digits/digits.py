"""The digits: 1 797 real 8 × 8 images that scikit-learn ships, and a network trained on them.

`python digits.py` writes digits.pth, index_to_name.json and a held-out image, digit.png, beside this file.
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from digits_model import DigitNet
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).parent
HELD_OUT = 360
EPOCHS = 25


@dataclass(frozen=True)
class Digits:
    """Images as uint8 arrays (rows, 8, 8), labels as ints (rows,)."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Split the images: 1 437 for training, 360 held out."""
    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)  # they come in 17 shades of grey
    parts = train_test_split(images, digits.target, test_size=HELD_OUT, random_state=0, stratify=digits.target)
    train_images, test_images, train_labels, test_labels = parts
    return Digits(train_images, train_labels, test_images, test_labels)


def as_tensor(images: np.ndarray) -> torch.Tensor:
    """uint8 (rows, 8, 8) → float32 (rows, 1, 8, 8) in [0, 1]."""
    return torch.from_numpy(images).unsqueeze(1).float() / 255


def as_png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def train(digits: Digits) -> nn.Module:
    """Train the network, on one thread; takes seconds.

    Each step is too small to be shared: beside other work two threads took 63 s where one took 6.
    """
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network = DigitNet()
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    images, labels = as_tensor(digits.train_images), torch.from_numpy(digits.train_labels)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    torch.set_num_threads(threads)
    return network.eval()


def top_classes(network: nn.Module, images: np.ndarray) -> list[str]:
    """Classify in this process: the names of the most probable classes."""
    with torch.inference_mode():
        return [str(number) for number in network(as_tensor(images)).argmax(1).tolist()]


def write_files(network: nn.Module, directory: Path) -> None:
    """Write what the archive holds besides the model file and the handler."""
    torch.save(network.state_dict(), directory / "digits.pth")
    (directory / "index_to_name.json").write_text(json.dumps({str(digit): str(digit) for digit in range(10)}))


if __name__ == "__main__":
    data = load()
    network = train(data)
    write_files(network, HERE)
    (HERE / "digit.png").write_bytes(as_png(data.test_images[0]))
    answers = top_classes(network, data.test_images)
    right = sum(answer == str(label) for answer, label in zip(answers, data.test_labels, strict=True))
    print(f"{right} of {HELD_OUT} held-out digits are right; digit.png is a {data.test_labels[0]}")
