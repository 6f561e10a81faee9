"""A small network that has learned something, so that its best classes mean something."""

import functools
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

CLASSES, SIDE = 6, 32
SOURCE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn1 = nn.Conv2d(3, 16, 3, stride=2, bias=False), nn.BatchNorm2d(16)
        self.body, self.bn2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 6)
    def forward(self, images):
        x = torch.relu(self.bn1(self.stem(images)))
        x = torch.relu(self.bn2(self.body(x)) + x)
        return self.head(x.mean(dim=(2, 3)))
"""


def examples(number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return noisy gratings of shape (number, 3, SIDE, SIDE), and the class of each: its direction."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (number,), generator=generator)
    angles = classes * (torch.pi / CLASSES)
    along, across = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    phases = torch.rand(number, generator=generator) * 2 * torch.pi
    paths = torch.cos(angles)[:, None, None] * along + torch.sin(angles)[:, None, None] * across
    gratings = torch.sin(paths + phases[:, None, None])[:, None].expand(-1, 3, -1, -1)
    return gratings + 0.7 * torch.randn(gratings.shape, generator=generator), classes


@functools.cache
def state() -> dict[str, torch.Tensor]:
    """Return the weights of a network of `SOURCE` after a second of training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        names: dict[str, type[nn.Module]] = {}
        exec(SOURCE, names)
        net = names["Net"]().train()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for step in range(60):
            images, classes = examples(64, step)
            optimizer.zero_grad()
            functional.cross_entropy(net(images), classes).backward()
            optimizer.step()
    return net.eval().state_dict()


def put_trained(model_dir: Path, samples: int) -> tuple[dict[str, str], dict[str, object]]:
    """Write the network and so many samples; return the manifest's entry, and the configuration."""
    (model_dir / "net.py").write_text(SOURCE)
    torch.save(state(), model_dir / "net.pth")
    folder = model_dir / "samples"
    folder.mkdir(exist_ok=True)
    for number, image in enumerate(examples(samples, 1000)[0]):
        (folder / f"{number:03}.json").write_text(json.dumps(image.tolist()))
    config: dict[str, object] = {"warmup": {"file": "samples", "contentType": "application/json"}}
    return {"modelFile": "net.py", "serializedFile": "net.pth"}, config
