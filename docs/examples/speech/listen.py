"""Send recordings as they would come from microphones: python listen.py URL [FILE.wav …]"""

import io
import sys
import urllib.request
import wave
from concurrent.futures import ThreadPoolExecutor

import numpy as np

RATE, PIECE = 16_000, 512  # samples: of a second, and of a piece, which has 32 ms


def samples_of(file: str) -> np.ndarray:
    with wave.open(file) as recording:
        step, rest = divmod(recording.getframerate(), RATE)
        assert not rest and recording.getsampwidth() == 2, f"{file}: not of 16, 32 or 48 kHz and 16 bits"
        samples = np.frombuffer(recording.readframes(recording.getnframes()), np.int16)
        return samples[:: step * recording.getnchannels()] / np.float32(32768)


def listen(url: str, name: str, sound: np.ndarray) -> float:
    """Send the pieces of one recording; return the greatest probability of speech."""
    starts = range(0, len(sound) - PIECE + 1, PIECE)
    found = []
    for start in starts:
        body = io.BytesIO()
        np.save(body, sound[start : start + PIECE].astype(np.float32))
        headers = {"ts_request_sequence_id": name, "ts_request_sequence_start": str(start == 0).lower()}
        headers["ts_request_sequence_end"] = str(start == starts[-1]).lower()
        with urllib.request.urlopen(urllib.request.Request(url, body.getvalue(), headers)) as answer:
            found.append(float(answer.read()))
    return max(found)


url, *files = sys.argv[1:]
noise = np.random.default_rng(0).normal(0, 0.01, (8, RATE))
sounds = {file: samples_of(file) for file in files} or {f"noise {number}": one for number, one in enumerate(noise)}
with ThreadPoolExecutor(len(sounds)) as pool:
    listening = {name: pool.submit(listen, url, name, sound) for name, sound in sounds.items()}
for name, heard in listening.items():
    print(f"{name}: {heard.result():.3f}")
