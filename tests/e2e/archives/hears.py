"""A typed handler of sounds: how long each is, in samples, and its loudest one."""

from tsctl import Audio


def predict(sounds: list[Audio]) -> list[dict[str, float]]:
    return [
        {"samples": len(each.samples), "rate": each.rate, "peak": float(abs(each.samples).max(initial=0))}
        for each in sounds
    ]
