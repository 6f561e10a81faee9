import magika

model = magika.Magika()  # once in each worker: load yours here


def predict(files: list[bytes]) -> list[dict]:  # the bodies of all requests of the batch
    found = [model.identify_bytes(file).prediction for file in files]
    return [{"type": each.output.label, "score": each.score} for each in found]  # one answer for each
