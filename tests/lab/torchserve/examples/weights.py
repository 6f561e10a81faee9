"""Random weights in the place of those that an example downloads: `python -m … MODEL_FILE|NETWORK FILE`.

A process of its own, because a model file is code of the checkout: it imports what lies beside it.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Weights that a documented command names, without a model file: the network that they are of, as TorchScript.
SCRIPTED = {
    "densenet161.pt": "densenet161",
    "resnet-152-batch.pt": "resnet152",
    "alexnet.pt": "alexnet",
    "vgg16.pt": "vgg16",
    "squeezenet1_1.pt": "squeezenet1_1",
    "resnet-18.pt": "resnet18",
    "rn50_int8_jit.pt": "resnet50",
    "res50_trt_fp16.pt": "resnet50",
}
# Weights that a model file downloads when it is imported or made: torch finds them in its cache.
CACHED = {"resnet101-63fe2227.pth": "resnet101", "resnet50-0676ba61.pth": "resnet50"}

MOST_STEPS = 1000


def make(wanted: Path, model_file: Path | None, cache: Path) -> str:
    """Make the file; return why that is not possible, empty if it was."""
    network = SCRIPTED.get(wanted.name)
    if model_file is None and network is None:
        return f"no weights are known for `{wanted.name}`"
    what = str(model_file) if model_file is not None else str(network)
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.torchserve.examples.weights", what, str(wanted)],
        env=os.environ | {"TORCH_HOME": str(cache)} | NO_NETWORK,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]


# Nothing is downloaded: a proxy that is not there, and what libraries ask.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9") | {
    "no_proxy": "127.0.0.1,localhost",
    "HF_HUB_OFFLINE": "1",
}


def fill_cache(cache: Path) -> None:
    """Put random weights where torch looks for those that it has downloaded."""
    import torch
    import torchvision

    folder = cache / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    for name, network in CACHED.items():
        torch.save(getattr(torchvision.models, network)(weights=None).state_dict(), folder / name)


def write(what: str, wanted: Path) -> None:
    """Write a state dict of the model file's one class, or the network as TorchScript.

    Raises:
        RuntimeError: the class learns its ten digits, and has not learned them.
    """
    import torch
    import torchvision

    if not what.endswith(".py"):
        network = getattr(torchvision.models, what)(weights=None).eval()
        torch.jit.save(torch.jit.trace(network, torch.zeros(1, 3, 224, 224)), str(wanted))
        return
    path = Path(what)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    classes = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, torch.nn.Module) and each.__module__ == path.stem
    ]
    network = classes[0]()
    digits = sorted((path.parent / "test_data").glob("[0-9].png"))
    if digits:
        learn(network, digits)
    torch.save(network.state_dict(), wanted)


def learn(network: Any, digits: Sequence[Path]) -> None:
    """Train the example mnist on the ten digits that it is asked about: its tests compare the answers."""
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
    write(sys.argv[1], Path(sys.argv[2]))
