"""Silero VAD on whole recordings: where there is speech, in samples."""

import torch
from silero_vad import get_speech_timestamps, load_silero_vad

from tsctl import Audio

RATE = 16_000

model = load_silero_vad()


def predict(recording: Audio) -> list[dict]:
    sound = torch.from_numpy(recording.samples)[None, None]
    sound = torch.nn.functional.interpolate(sound, scale_factor=RATE / recording.rate)[0, 0]
    return get_speech_timestamps(sound, model, sampling_rate=RATE)
