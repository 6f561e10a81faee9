"""The length of a text, and a number of the request's."""


def predict(text: str, top: int = 3) -> dict[str, int]:
    return {"length": len(text), "top": top}
