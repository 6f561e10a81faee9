"""Random weights in the place of those that a test downloads: `python -m … MODEL_FILE FILE`.

A process of its own, because a model file is code of the checkout: it imports what lies beside it.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST_STEPS = 1000
# Nothing is downloaded: a proxy that is not there, and what libraries ask.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9") | {
    "no_proxy": "127.0.0.1,localhost",
    "HF_HUB_OFFLINE": "1",
}


def make(wanted: Path, model_file: Path) -> None:
    """Make the file, if the model file lets it; a test that misses it fails, and says so."""
    command = [sys.executable, "-m", __spec__.name, str(model_file), str(wanted)]
    subprocess.run(command, env=os.environ | NO_NETWORK, capture_output=True, timeout=300)


def write(path: Path, wanted: Path) -> None:
    """Write a state dict of the model file's one class.

    Raises:
        RuntimeError: the class learns its ten digits, and has not learned them.
    """
    import torch

    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    network = next(
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, torch.nn.Module) and each.__module__ == path.stem
    )()
    digits = sorted((path.parent / "test_data").glob("[0-9].png"))
    if digits:
        learn(network, digits)
    torch.save(network.state_dict(), wanted)


def learn(network: Any, digits: Sequence[Path]) -> None:
    """Train the example mnist on the ten digits that it is asked about: the tests compare the answers."""
    import torch
    from PIL import Image
    from torchvision import transforms

    prepare = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    images = torch.stack([prepare(Image.open(digit)) for digit in digits])
    numbers = torch.tensor([int(digit.stem) for digit in digits])
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(network.parameters())
    for _ in range(MOST_STEPS):
        network.eval()
        with torch.no_grad():
            right = (network(images).argmax(1) == numbers).all()
        if right:
            return
        network.train()
        optimiser.zero_grad()
        torch.nn.functional.nll_loss(network(images), numbers).backward()
        optimiser.step()
    raise RuntimeError(f"the digits are not told apart after {MOST_STEPS} steps")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
