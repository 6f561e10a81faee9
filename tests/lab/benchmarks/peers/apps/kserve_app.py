"""The model of tensors as a user of KServe serves it. Settings come from the environment."""

import os

from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer


class Mean(Model):
    def load(self) -> bool:
        self.ready = True
        return True

    def predict(self, payload: InferRequest, headers: dict[str, str] | None = None) -> InferResponse:
        numbers = payload.inputs[0].as_numpy()
        if self.name == "tensor":
            name, found = "MEAN", numbers.mean(axis=(2, 3))
        else:
            name, found = "SUM", numbers.sum(axis=1, keepdims=True)
        output = InferOutput(name, list(found.shape), "FP32")
        output.set_data_from_numpy(found, binary_data=False)
        return InferResponse(payload.id or "", self.name, [output])


if __name__ == "__main__":
    model = Mean(os.environ["BENCH_MODEL"])
    model.load()
    ports = {"http_port": int(os.environ["PORT"]), "grpc_port": int(os.environ["GRPC_PORT"])}
    ModelServer(**ports, workers=1).start([model])
