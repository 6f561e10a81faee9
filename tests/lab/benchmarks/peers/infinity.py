"""infinity-emb, a server of embeddings: FastAPI in front, the model in a thread of the same process."""

import json
from dataclasses import replace
from pathlib import Path

from tests.lab.benchmarks.models import MINILM, MODELS, Request, Served
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

QUIET = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}


class Infinity(Packaged):
    name = "infinity-emb"
    patience = 240.0  # before it serves, it times batches of the longest texts that it would take
    packages = (
        "infinity-emb[server,torch]==0.0.78",
        "transformers==4.48.3",    # the last that optimum's BetterTransformer takes, which it uses by default
        "optimum==1.24.0",
        "numpy<2",
        "scikit-learn<1.7",        # these two are built for that numpy
        "scipy<1.15",
        "fastapi<0.130",           # later ones want a content type
    )  # fmt: skip

    def suits(self, workload: str) -> bool:
        return workload == "minilm"

    def adapt(self, served: Served) -> Served:
        return replace(served, requests=[_in_json(request) for request in served.requests])

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        command: list[str | Path] = [
            self.python().parent / "infinity_emb", "v2", "--model-id", MODELS / "minilm" / MINILM,
            "--batch-size", str(setup.batch_size), "--device", "cpu", "--host", "127.0.0.1", "--port", str(port),
        ]  # fmt: skip
        process = spawn(command, setup.folder, QUIET)
        return Running(process, port, "/embeddings", setup.folder / "output.log", ("infinity_emb",))


def _in_json(request: Request) -> Request:
    body = request.body.with_suffix(".json")
    body.write_text(json.dumps({"input": [request.body.read_text()]}))
    # As the function in one process answers: a list of numbers.
    return Request(body, lambda answer: request.right(json.dumps(json.loads(answer)["data"][0]["embedding"]).encode()))
