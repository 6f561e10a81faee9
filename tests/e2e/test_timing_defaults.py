"""A default that turns out to be a loss, after the first answer: its workers are replaced, and no request fails."""

import threading
from pathlib import Path

from tests.e2e.served import Served, eventually, raise_priority
from tests.handlers.optimize.nets import RESIDUAL, put_archive
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.handlers.builtin.support.example_image import example_image

LONG = 120.0  # seconds of patience: of a worker that times its defaults, and of one that is loaded then
# A model whose code is slow unless its normalisation is one: folding it away is a loss, also where others disturb it.
_LOSES = """
            if not isinstance(self.bn1, nn.BatchNorm2d):
                time.sleep(0.2)
            return self.head"""


def test_workers_are_replaced_without_a_default_that_is_a_loss_and_no_request_fails(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    source = RESIDUAL.replace("import torch\n", "import time, torch\n", 1).replace(
        "\n            return self.head", _LOSES
    )
    put_archive(folder, source)
    packing = Packing(
        model_name="net", version="1.0", handler="image_classifier", model_file=folder / "net.py",
        serialized_file=folder / "net.pth",
    )  # fmt: skip
    served.tsctl("stop")
    served.environment["TSCTL_TEMPLATE"] = "true"
    served.start()
    served.tsctl("register", write_archive(packing, served.store).name)

    def worker() -> int:
        (only,) = served.describe("net")["workers"]
        return int(only["pid"])

    def fold() -> dict[str, object]:
        """The outcome of `fold`; empty while no worker is ready."""
        return next((each for each in served.describe("net")["tsctl"]["optimize"] if each["name"] == "fold"), {})

    first, before = worker(), fold()
    assert before["applied"] and "gain" not in before  # not timed yet
    statuses: list[int] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.05):
            statuses.append(served.ask("/predictions/net", example_image()).status)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        eventually(lambda: raise_priority(served), "the defaults are timed, where no other wants the core")

        def replaced() -> bool:
            raise_priority(served)
            return len(served.describe("net")["workers"]) == 1 and worker() != first

        eventually(replaced, "the worker is replaced", LONG)
        eventually(lambda: fold().get("applied") is False, "the new worker does without")
    finally:
        over.set()
        asking.join()

    after = fold()
    assert isinstance(after["gain"], float) and after["gain"] < 0.98
    assert "it is no gain here" in str(after["reason"])
    assert after["known"]
    assert statuses and set(statuses) == {200}
    assert "a default optimisation is a loss here, so its workers are replaced" in served.tsctl("logs")
    assert "known from an earlier load" in served.tsctl("describe", "net")
