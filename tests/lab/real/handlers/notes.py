"""basic-pitch: the notes that are played in a recording."""

import tempfile

from basic_pitch import ICASSP_2022_MODEL_PATH
from basic_pitch.inference import Model
from basic_pitch.inference import predict as notes_of

model = Model(ICASSP_2022_MODEL_PATH)


def predict(recording: bytes) -> list[dict]:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        file.write(recording)
        file.flush()
        _, _, notes = notes_of(file.name, model)
    return [
        {"from": start, "to": end, "pitch": int(pitch), "loud": float(loud)} for start, end, pitch, loud, _ in notes
    ]
