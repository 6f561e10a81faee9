"""The models of peers without handlers: the same work as tsctl's and TorchServe's handlers."""

import io
import json
import os
from collections.abc import Callable

Run = Callable[[list[bytes]], list[bytes]]


def load() -> Run:
    """Load the model that the environment names."""
    name = os.environ["BENCH_MODEL"]
    if name in ("constant", "brief", "fast"):
        return load_constant(float(os.environ.get("BENCH_PAUSE", "0")))
    if name == "text":
        return load_text()
    if name == "flowers":
        return load_flowers()
    return load_resnet(name, os.environ["BENCH_WEIGHTS"])


def load_slow() -> Run:
    """Load the slow model beside a fast one."""
    return load_constant(0.5)


def load_text() -> Run:
    """Encode texts with the very module that our handler has."""
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("text_handler", Path(__file__).parents[2] / "text_handler.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    encoder = module.Encoder()
    encoder.initialize(None)
    return lambda bodies: [json.dumps(each).encode() for each in encoder.handle([{"body": b} for b in bodies], None)]


def load_flowers() -> Run:
    """Score flowers, whose measures come as JSON."""
    import torch

    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)

    def run(bodies: list[bytes]) -> list[bytes]:
        with torch.inference_mode():
            scores = model(torch.tensor([json.loads(body) for body in bodies])).squeeze(1)
        return [json.dumps({"score": score}).encode() for score in scores.tolist()]

    return run


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
