"""Frames: `python -m tests.lab.benchmarks.layers.frames`. A batch out and its answers back, encoded and decoded."""

from tests.lab.benchmarks.layers.timing import microseconds, table
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

BUDGET = 5.0
BATCH = 8
HEADERS = [("Host", "127.0.0.1:8080"), ("Content-Length", "100"), ("url_path", ""), ("explain", "False")]


def predict(size: int) -> wire.Predict:
    params = [("body", "", bytes(size))]
    return wire.Predict(1, [wire.Row(f"id-{index}", list(HEADERS), list(params)) for index in range(BATCH)])


def done(size: int) -> wire.Done:
    return wire.Done(1, [wire.Answer(200, bytes(size)) for _ in range(BATCH)], 0.001)


def costs(size: int) -> tuple[float, float]:
    """Microseconds of a request's share in the daemon (encode, then cut and decode) and in the worker."""
    question, answer = predict(size), done(3)
    there, back = wire.encode(question), bytes(wire.encode(answer))
    reader = FrameReader()

    def in_daemon() -> None:
        wire.encode(question)
        for frame in reader.feed(back):
            wire.decode_for_daemon(frame)

    def in_worker() -> None:
        wire.decode_for_worker(memoryview(there)[wire.LENGTH.size :])
        wire.encode(answer)

    return microseconds(in_daemon, BATCH), microseconds(in_worker, BATCH)


def main() -> None:
    rows = []
    for size in (100, 10_000, 100_000):
        daemon, worker = costs(size)
        what = f"a request of {size:,} B".replace(",", " ")
        rows += [(f"{what}: both ends", daemon + worker), (f"{what}: daemon", daemon), (f"{what}: worker", worker)]
    table("Frames, in a batch of 8", rows, BUDGET)


if __name__ == "__main__":
    main()
