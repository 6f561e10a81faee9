"""The model of tensors as a user of MLServer serves it."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Mean(MLModel):
    async def load(self) -> bool:
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        mean = NumpyCodec.decode_input(payload.inputs[0]).mean(axis=(2, 3))
        output = NumpyCodec.encode_output("MEAN", mean)
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=[output])
