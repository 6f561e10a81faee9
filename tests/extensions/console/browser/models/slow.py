"""Sleep as many seconds as a text says."""

import time


def predict(text: str) -> str:
    time.sleep(float(text))
    return text
