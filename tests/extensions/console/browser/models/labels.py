"""The share of each letter of a text, as `text_classifier` answers; and an error where the text is `fail`."""

from collections import Counter


def predict(texts: list[str]) -> list[dict[str, float]]:
    if "fail" in texts:
        raise ValueError("<img src=x onerror=alert(1)> is no text")
    return [{letter: count / len(text) for letter, count in Counter(text).items()} for text in texts]
