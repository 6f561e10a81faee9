"""The models as a user of mosec serves them. Settings come from the environment."""

import json
import os

import models_of_apps as models
from mosec import Runtime, Server, Worker


class Model(Worker):
    name = ""

    def __init__(self) -> None:
        self._model = models.load(self.name)

    def deserialize(self, data: bytes) -> bytes:
        return data

    def forward(self, data: list[bytes]) -> list[bytes]:
        return self._model(data)

    def serialize(self, data: bytes) -> bytes:
        return data


class Beside(Model):
    name = os.environ["BENCH_BESIDE"]


if __name__ == "__main__":
    server = Server()
    delay = json.loads(os.environ["BENCH_DELAY"])
    batching = {"max_batch_size": int(os.environ["BENCH_BATCH_SIZE"]), "max_wait_time": round(delay * 1000)}
    if Beside.name:
        routes = {"/inference": Model, "/beside": Beside}
        server.register_runtime({path: [Runtime(each, num=1, **batching)] for path, each in routes.items()})
    else:
        server.append_worker(Model, num=1, **batching)
    server.run()
