"""The models as a user of PyTriton serves them with NVIDIA's Triton. Settings come from the environment."""

import os

import models_of_apps as models
import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

NAME = os.environ["BENCH_MODEL"]


def of_bytes(name: str = ""):
    """Return a function of the bodies of a batch, and the tensors that it takes and gives."""
    run = models.load(name)

    @batch
    def infer(BODY: np.ndarray) -> dict[str, np.ndarray]:
        return {"ANSWER": np.array(run(BODY[:, 0].tolist()), dtype=object)[:, None]}

    return infer, Tensor(name="BODY", dtype=bytes, shape=(1,)), Tensor(name="ANSWER", dtype=bytes, shape=(1,))


def of_vectors():
    """Return a function of a batch of 16 numbers each, and the tensors that it takes and gives."""

    @batch
    def infer(NUMBERS: np.ndarray) -> dict[str, np.ndarray]:
        return {"SUM": NUMBERS.sum(axis=1, keepdims=True)}

    return (
        infer,
        Tensor(name="NUMBERS", dtype=np.float32, shape=(16,)),
        Tensor(name="SUM", dtype=np.float32, shape=(1,)),
    )


def of_tensors():
    """Return a function of the images of a batch, and the tensors that it takes and gives."""

    @batch
    def infer(IMAGE: np.ndarray) -> dict[str, np.ndarray]:
        return {"MEAN": IMAGE.mean(axis=(2, 3))}

    return (
        infer,
        Tensor(name="IMAGE", dtype=np.float32, shape=(3, 224, 224)),
        Tensor(name="MEAN", dtype=np.float32, shape=(3,)),
    )


if __name__ == "__main__":
    known = {"tensor": of_tensors, "vector": of_vectors}
    served = {NAME: known.get(NAME, of_bytes)()}
    if beside := os.environ["BENCH_BESIDE"]:
        served[beside] = of_bytes(beside)
    delay = round(float(os.environ["BENCH_DELAY"]) * 1e6)
    batching = ModelConfig(
        max_batch_size=int(os.environ["BENCH_BATCH_SIZE"]),
        batcher=DynamicBatcher(max_queue_delay_microseconds=delay),
    )
    ports = {f"{kind}_port": int(os.environ[f"{kind.upper()}_PORT"]) for kind in ("http", "grpc", "metrics")}
    with Triton(config=TritonConfig(http_address="127.0.0.1", **ports)) as triton:
        for name, (function, takes, gives) in served.items():
            triton.bind(model_name=name, infer_func=function, inputs=[takes], outputs=[gives], config=batching)
        triton.serve()
