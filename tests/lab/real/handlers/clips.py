"""Silero VAD on whole recordings: where there is speech, in samples."""

import io

import soundfile
import torch
from silero_vad import get_speech_timestamps, load_silero_vad

RATE = 16_000

model = load_silero_vad()


def predict(recording: bytes) -> list[dict]:
    sound, rate = soundfile.read(io.BytesIO(recording), dtype="float32")
    sound = torch.nn.functional.interpolate(torch.from_numpy(sound)[None, None], scale_factor=RATE / rate)[0, 0]
    return get_speech_timestamps(sound, model, sampling_rate=RATE)
