from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite_pytorch.utils import get_model_params


class Lite0(EfficientNet):
    def __init__(self):
        super().__init__(*get_model_params("efficientnet-lite0", {}))
