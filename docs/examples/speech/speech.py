"""How probably there is speech in each piece of a live recording: Silero VAD, which remembers what it has heard."""

from importlib import resources
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

RATE = np.array(16_000, np.int64)
BEFORE = 64  # samples of the piece before, which the network reads again

session = onnxruntime.InferenceSession(str(resources.files("silero_vad.data") / "silero_vad.onnx"))


class Speech:
    batch_size = 32

    def setup(self) -> None:
        self.heard: dict[str, tuple[Any, Any]] = {}  # of each stream: its last samples, and the network's state

    def predict(self, pieces: list[NDArray[np.float32]], context: Any) -> list[float]:  # 512 samples of each stream
        streams = [context.get_sequence_id(idx) for idx in range(len(pieces))]
        for idx, stream in enumerate(streams):
            if context.get_request_header(idx, context.header_key_sequence_start) == "true" or stream not in self.heard:
                self.heard[stream] = np.zeros(BEFORE, np.float32), np.zeros((2, 128), np.float32)
        before, states = zip(*(self.heard[stream] for stream in streams), strict=True)
        read = np.concatenate([np.stack(before), np.stack(pieces)], axis=1)
        found, after = session.run(None, {"input": read, "state": np.stack(states, axis=1), "sr": RATE})
        for idx, stream in enumerate(streams):
            self.heard[stream] = pieces[idx][-BEFORE:], after[:, idx]
            if context.get_request_header(idx, context.header_key_sequence_end) == "true":
                del self.heard[stream]
        return [round(float(each), 4) for each in found[:, 0]]
