"""The models of tensors as a user of MLServer serves it."""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Mean(MLModel):
    output = "MEAN"

    async def load(self) -> bool:
        return True

    def run(self, numbers: np.ndarray) -> np.ndarray:
        return numbers.mean(axis=(2, 3))

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        output = NumpyCodec.encode_output(self.output, self.run(NumpyCodec.decode_input(payload.inputs[0])))
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=[output])


class Sum(Mean):
    output = "SUM"

    def run(self, numbers: np.ndarray) -> np.ndarray:
        return numbers.sum(axis=1, keepdims=True)
