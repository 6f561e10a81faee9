"""MTCNN: the faces of a photograph, as boxes."""

from facenet_pytorch import MTCNN
from PIL.Image import Image

model = MTCNN(keep_all=True)


def predict(image: Image) -> list[dict]:
    boxes, sure = model.detect(image.convert("RGB"))
    if boxes is None:
        return []
    return [{"box": box.tolist(), "sure": float(each)} for box, each in zip(boxes, sure, strict=True)]
