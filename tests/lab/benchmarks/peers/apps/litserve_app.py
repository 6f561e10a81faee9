"""The model as a user of LitServe serves it: `litserve_app.py PORT`; settings come from the environment."""

import os
import sys
from typing import Annotated, Any

import litserve as ls
import models_of_apps as models
from fastapi import Depends, Request, Response


async def raw_body(request: Request) -> bytes:
    return await request.body()


class Model(ls.LitAPI):
    def setup(self, device: str) -> None:
        self._model = models.load()

    def decode_request(self, request: Annotated[bytes, Depends(raw_body)]) -> bytes:
        return request

    def predict(self, x: list[bytes]) -> list[bytes]:
        return self._model(x)

    def encode_response(self, output: bytes) -> Any:
        return Response(output)


if __name__ == "__main__":
    size, delay = int(os.environ["BENCH_BATCH_SIZE"]), float(os.environ["BENCH_DELAY"])
    model = Model(max_batch_size=size, batch_timeout=delay)
    server = ls.LitServer(model, accelerator="cpu", workers_per_device=1, timeout=120)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", generate_client_file=False)
