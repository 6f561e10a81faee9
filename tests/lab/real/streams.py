"""Eight live recordings at once, a sequence each, over each protocol: Silero VAD remembers what each has heard.

The protocols of extensions are tests/extensions/NAME/live_streams.py: `OPTIONS` of the daemon, and `ways`, which
returns functions as `over_http` does.
"""

import contextlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tests.e2e.served import Served
from tests.kit.shelf import modules
from tests.lab.real import inputs
from tests.places import ROOT

EXAMPLE = ROOT / "docs/examples/speech"
CLOSE = 1e-3  # of a probability; the handler answers four digits

# Sends a piece of a stream, the first and the last marked so, and returns the answer.
Way = Callable[[str, NDArray[np.float32], bool, bool], float]


def over_http(served: Served, model: str) -> Way:
    def ask(stream: str, piece: NDArray[np.float32], start: bool, end: bool) -> float:
        body = io.BytesIO()
        np.save(body, piece)
        marks = {"ts_request_sequence_id": stream}
        marks |= {"ts_request_sequence_start": "true"} if start else {}
        marks |= {"ts_request_sequence_end": "true"} if end else {}
        with contextlib.closing(served.connect()) as connection:  # `ask` would write `-` for `_`
            connection.request("POST", f"/predictions/{model}", body.getvalue(), marks)
            answer = connection.getresponse()
            said = answer.read()
        assert answer.status == 200, said
        return float(said)

    return ask


def expected(pieces: list[NDArray[np.float32]]) -> list[float]:
    """Return the answers of the package's own model, which hears one stream."""
    import torch
    from silero_vad import load_silero_vad

    model = load_silero_vad(onnx=True)
    return [model(torch.from_numpy(piece.copy()), inputs.RATE).item() for piece in pieces]


def options() -> list[str]:
    """Return the options of a daemon that serves all protocols."""
    return [option for each in modules("live_streams") for option in each.OPTIONS]


def compare_streams(served: Served, model: str) -> tuple[int, list[str]]:
    """Serve the example of docs, and send the streams over each protocol; return the number of answers, and errors."""
    served.tsctl("register", str(EXAMPLE / "speech.py"), "--name", model)
    ways: dict[str, Way] = {"HTTP": over_http(served, model)}
    for each in modules("live_streams"):
        ways |= each.ways(served, model)
    streams = inputs.live()
    right = [expected(pieces) for pieces in streams]

    def listen(way: str, number: int) -> list[float]:
        pieces, ask = streams[number], ways[way]
        last = len(pieces) - 1
        return [ask(f"{way} {number}", piece, at == 0, at == last) for at, piece in enumerate(pieces)]

    wrong: list[str] = []
    answers = 0
    for way in ways:
        with ThreadPoolExecutor(len(streams)) as pool:
            found = list(pool.map(lambda number, way=way: listen(way, number), range(len(streams))))
        answers += sum(map(len, found))
        wrong += [
            f"{way}, stream {number}, piece {at}: {one}, expected {other}"
            for number, (heard, wanted) in enumerate(zip(found, right, strict=True))
            for at, (one, other) in enumerate(zip(heard, wanted, strict=True))
            if abs(one - other) > CLOSE
        ]
    sizes = served.describe(model)["tsctl"]["batching"]["sizes"]
    if not any(int(size) > 1 for size in sizes):
        wrong.append(f"no batch had pieces of several streams: {sizes}")
    served.tsctl("unregister", model)
    return answers, wrong
