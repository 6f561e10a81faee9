"""The models of peers without handlers: the same work as tsctl's and TorchServe's handlers."""

import io
import json
import os
import sys
from collections.abc import Callable

Run = Callable[[list[bytes]], list[bytes]]
IMAGENET = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # the mean and the standard deviation of its pixels

PAUSES = {"constant": 0.0, "brief": 0.02}  # seconds that a batch takes


def load() -> Run:
    """Load the model that the environment names."""
    name, weights = os.environ["BENCH_MODEL"], os.environ["BENCH_WEIGHTS"]
    if name in PAUSES:
        return load_constant(PAUSES[name])
    if name == "minilm":
        return load_minilm(weights)
    if name == "lite0":
        return load_lite0(weights, os.environ.get("BENCH_RUNTIME") == "onnxruntime")
    return load_resnet(name, weights)


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

    model = getattr(torchvision.models, name)()
    model.load_state_dict(torch.load(weights, weights_only=True))
    return classify(model.eval(), *IMAGENET)


def load_lite0(weights: str, with_onnxruntime: bool) -> Run:
    """Classify images by EfficientNet-Lite0."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    if not with_onnxruntime:
        return classify(model, [0.5] * 3, [0.5] * 3)
    import onnxruntime

    file, options = io.BytesIO(), onnxruntime.SessionOptions()
    torch.onnx.export(model, (torch.zeros(1, 3, 224, 224),), file, dynamo=False, input_names=["images"])
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])

    def run(images: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(session.run(None, {"images": images.numpy()})[0])

    return classify(run, [0.5] * 3, [0.5] * 3)


def reader(mean: list[float], std: list[float]) -> Callable:
    """Return what reads an image: its usual 224 × 224 middle, float32, shape (3, 224, 224)."""
    from PIL import Image
    from torchvision import transforms

    prepare = transforms.Compose([
        transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), transforms.Normalize(mean, std),
    ])  # fmt: skip
    return lambda body: prepare(Image.open(io.BytesIO(body)).convert("RGB"))


def classify(model: Callable, mean: list[float], std: list[float]) -> Run:
    """Give a network's five best classes of images."""
    import torch

    read = reader(mean, std)

    def run(bodies: list[bytes]) -> list[bytes]:
        images = torch.stack([read(body) for body in bodies])
        with torch.inference_mode():
            probabilities, classes = torch.topk(torch.softmax(model(images), 1), 5)
        pairs = zip(classes.tolist(), probabilities.tolist(), strict=True)
        return [json.dumps(dict(zip(map(str, c), p, strict=True))).encode() for c, p in pairs]

    return run


def load_minilm(weights: str) -> Run:
    """Embed texts by the function of the documentation's example, which lies beside the weights."""
    sys.path.insert(0, os.path.dirname(weights))
    from embed import predict

    return lambda bodies: [json.dumps(row).encode() for row in predict([body.decode() for body in bodies])]
