"""`named_function.py:score`: the entry point is the function that the manifest names, not a class beside it."""

from ts.context import Context


class Scorer:
    @staticmethod
    def score_one(value):
        return {"score": float(value) / 10}


def score(data, context: Context):
    if data is None:
        context.scale_is_known = True
        return None
    assert context.scale_is_known
    return [Scorer.score_one(row["body"]["value"]) for row in data]
