"""ResNet-152, as an archive's model file: one module class that needs no arguments."""

from torchvision.models.resnet import Bottleneck, ResNet


class ResNet152(ResNet):
    def __init__(self) -> None:
        super().__init__(Bottleneck, [3, 8, 36, 3])
