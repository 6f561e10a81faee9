"""The model as a user of mosec serves them. Settings come from the environment."""

import json
import os

import models_of_apps as models
from mosec import Server, Worker


class Model(Worker):
    def __init__(self) -> None:
        self._model = models.load()

    def deserialize(self, data: bytes) -> bytes:
        return data

    def forward(self, data: list[bytes]) -> list[bytes]:
        return self._model(data)

    def serialize(self, data: bytes) -> bytes:
        return data


if __name__ == "__main__":
    server = Server()
    delay = json.loads(os.environ["BENCH_DELAY"])
    batching = {"max_batch_size": int(os.environ["BENCH_BATCH_SIZE"]), "max_wait_time": round(delay * 1000)}
    server.append_worker(Model, num=1, **batching)
    server.run()
