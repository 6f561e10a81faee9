"""RapidOCR: the lines of a page."""

import numpy as np
from PIL.Image import Image
from rapidocr_onnxruntime import RapidOCR

model = RapidOCR()


def predict(page: Image) -> list[dict]:
    lines, _ = model(np.asarray(page.convert("RGB")))
    return [{"text": text, "sure": float(sure), "box": box} for box, text, sure in lines or ()]
