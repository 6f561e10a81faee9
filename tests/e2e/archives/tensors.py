"""Answers with what it got, and keeps the arrays of requests that ask for it."""

KEPT = []


def handle(data, context):
    answers = []
    for index, row in enumerate(data):
        parameters = context.get_request_parameters(index)
        if parameters.get("keep"):
            KEPT.append((int(row["x"].reshape(-1)[0]), row["x"]))
        if parameters.get("forget"):
            KEPT.clear()
        intact = all((array == first).all() for first, array in KEPT)
        answers.append({"x": row["x"], "intact": [intact]} if "x" in row else {"body": row["body"]})
    return answers
