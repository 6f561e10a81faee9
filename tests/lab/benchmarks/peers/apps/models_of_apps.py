"""The models of peers without handlers: the same work as tsctl's and TorchServe's handlers."""

import io
import json
import os
from collections.abc import Callable

Run = Callable[[list[bytes]], list[bytes]]


PAUSES = {"constant": 0.0, "brief": 0.02}  # seconds that a batch takes


def load() -> Run:
    """Load the model that the environment names."""
    name = os.environ["BENCH_MODEL"]
    if name in PAUSES:
        return load_constant(PAUSES[name])
    return load_resnet(name, os.environ["BENCH_WEIGHTS"])


def load_constant(pause: float) -> Run:
    """Answer the number of bytes that came: as good as constant, and it shows that they did."""
    import time

    def run(bodies: list[bytes]) -> list[bytes]:
        if pause:
            time.sleep(pause)
        return [b"%d" % len(body) for body in bodies]

    return run


def load_resnet(name: str, weights: str) -> Run:
    """Classify images, as torchvision's documentation does it."""
    import torch
    import torchvision
    from PIL import Image
    from torchvision import transforms

    model = getattr(torchvision.models, name)()
    model.load_state_dict(torch.load(weights, weights_only=True))
    model.eval()
    prepare = transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])  # fmt: skip

    def run(bodies: list[bytes]) -> list[bytes]:
        images = torch.stack([prepare(Image.open(io.BytesIO(body)).convert("RGB")) for body in bodies])
        with torch.inference_mode():
            probabilities, classes = torch.topk(torch.softmax(model(images), 1), 5)
        pairs = zip(classes.tolist(), probabilities.tolist(), strict=True)
        return [json.dumps(dict(zip(map(str, c), p, strict=True))).encode() for c, p in pairs]

    return run
