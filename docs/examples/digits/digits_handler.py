"""The handler of the digits: only what differs from an image classifier for photographs."""

from torchvision import transforms
from ts.torch_handler.image_classifier import ImageClassifier


class DigitClassifier(ImageClassifier):
    image_processing = transforms.ToTensor()  # grey PNG → (1, 8, 8) in [0, 1]
    topk = 3
