"""Small networks with random weights, whose normalisations have seen something."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from tests.handlers.samples import write
from tsctl.daemon.marfile import Packing, write_archive

# The archive's model file: a strided convolution, a residual block with a depthwise convolution, two heads.
RESIDUAL = """
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 7, stride=4, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(8)
            self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.bn2 = nn.BatchNorm2d(8)
            self.head = nn.Linear(8, 6)
        def forward(self, images):
            x = torch.relu(self.bn1(self.stem(images)))
            x = x + torch.relu(self.bn2(self.depthwise(x)))
            return self.head(x.mean(dim=(2, 3)))
"""


def settled(model: nn.Module) -> nn.Module:
    """Set means, variances and weights of normalisations to random values; return the model in evaluation mode."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith("running_var"):
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
            elif tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.3)
    return model.eval()


def put_archive(model_dir: Path, source: str = RESIDUAL) -> dict[str, str]:
    """Write a model file and its weights; give the manifest's entry for them."""
    write(model_dir / "net.py", source)
    names: dict[str, Callable[[], nn.Module]] = {}
    exec(compile((model_dir / "net.py").read_text(), "net.py", "exec"), names)
    torch.save(settled(names["Net"]()).state_dict(), model_dir / "net.pth")
    return {"modelFile": "net.py", "serializedFile": "net.pth"}


def pack_net(folder: Path, store: Path, config: str, source: str = RESIDUAL, extra_files: str = "") -> str:
    """Put an archive of an image classifier, `net`, into a store; give its file's name."""
    folder.mkdir()
    names = put_archive(folder, source)
    (folder / "config.yaml").write_text(config)
    model, weights = (folder / names[key] for key in ("modelFile", "serializedFile"))
    packing = Packing(
        model_name="net", version="1.0", handler="image_classifier", model_file=model, serialized_file=weights,
        extra_files=extra_files, config_file=folder / "config.yaml",
    )  # fmt: skip
    return write_archive(packing, store).name
