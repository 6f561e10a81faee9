"""The models as a user of PyTriton serves them. Settings come from the environment."""

import os
from typing import Any

import models_of_apps as models
import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


@batch
def mean(IMAGE: Any) -> dict[str, Any]:
    return {"MEAN": IMAGE.mean(axis=(2, 3))}


@batch
def mean_of_numbers(X: Any) -> dict[str, Any]:
    return {"MEAN": X.mean(axis=1, keepdims=True)}


def answering(run: models.Run) -> Any:
    @batch
    def answer(BODY: Any) -> dict[str, Any]:
        return {"ANSWER": np.array([[each] for each in run([bytes(row[0]) for row in BODY])], dtype=np.bytes_)}

    return answer


if __name__ == "__main__":
    name, address = os.environ["BENCH_MODEL"], "127.0.0.1"
    if name == "tensor":
        function = mean
        inputs = [Tensor(name="IMAGE", dtype=np.float32, shape=(3, 224, 224))]
        outputs = [Tensor(name="MEAN", dtype=np.float32, shape=(3,))]
    elif name == "few_numbers":
        function = mean_of_numbers
        inputs = [Tensor(name="X", dtype=np.float32, shape=(16,))]
        outputs = [Tensor(name="MEAN", dtype=np.float32, shape=(1,))]
    else:
        function = answering(models.load())
        inputs = [Tensor(name="BODY", dtype=np.bytes_, shape=(1,))]
        outputs = [Tensor(name="ANSWER", dtype=np.bytes_, shape=(1,))]
    batcher = DynamicBatcher(max_queue_delay_microseconds=round(float(os.environ["BENCH_DELAY"]) * 1e6))
    config = ModelConfig(batching=True, max_batch_size=int(os.environ["BENCH_BATCH_SIZE"]), batcher=batcher)
    ports = {name: int(os.environ[name.upper()]) for name in ("grpc_port", "metrics_port")}
    server = TritonConfig(http_address=address, http_port=int(os.environ["PORT"]), grpc_address=address, **ports)
    with Triton(config=server, workspace=os.path.abspath("workspace")) as triton:
        triton.bind(name, function, inputs=inputs, outputs=outputs, config=config)
        triton.serve()
