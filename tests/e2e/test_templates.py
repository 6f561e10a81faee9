"""Workers that are forked from templates serve as those that are executed do, and survive what happens to these."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import Served, eventually
from tsctl.daemon.workers.cores import usable_cores


def ask(served: Served, word: str, model: str = "warm") -> Any:
    answer = served.predict(model, {"do": word})
    assert answer.status == 200, answer.body
    return answer.json


def children(pid: int) -> dict[int, str]:
    """The processes whose parent is this one, each with its state."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, *_ = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parent) == pid:
            found[int(directory.name)] = state
    return found


def templates(served: Served) -> list[int]:
    """The daemon's children that are no workers of `warm`, the only model."""
    return sorted(set(children(served.pid)) - {*served.pids("warm")})


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with templates, and two workers of the model `warm`."""
    with Served(tmp_path_factory.mktemp("warm")) as served:
        served.environment["TSCTL_TEMPLATE"] = "true"
        served.patience = 240.0  # the first torch.compile on a machine takes long
        served.start()
        served.register("warm", "--workers", "2")
        yield served


@pytest.mark.thin
def test_a_worker_is_a_child_of_the_daemon_and_says_so(warm: Served) -> None:
    answer = ask(warm, "nothing")

    assert answer["parent"] == warm.pid
    assert answer["threads"] == max(1, usable_cores() // 2)
    assert b"tsctl.handlers.template" in Path(f"/proc/{answer['pid']}/cmdline").read_bytes()
    assert f"initialized {answer['pid']}" in warm.log("warm@1.0.log")


@pytest.mark.parametrize(
    ("word", "did"),
    [("parallel", [400, 400, True]), ("fork", [1, 2]), ("spawn", [1, 2]), pytest.param("compile", [3.0, 3.0, 3.0])],
)
def test_everything_works_in_a_forked_worker(word: str, did: Any, warm: Served) -> None:
    assert ask(warm, word)["did"] == did


def test_a_template_that_is_killed_harms_no_worker_and_the_next_has_another(warm: Served) -> None:
    before = warm.pids("warm")
    eventually(lambda: len(templates(warm)) == 1, "what other workers left is reaped")
    (template,) = templates(warm)

    os.kill(template, signal.SIGKILL)
    eventually(lambda: "the template torch has gone: it was killed by signal 9" in warm.log(), "the daemon knows")

    assert ask(warm, "nothing")["pid"] in before
    warm.tsctl("scale", "warm", "3")
    (new,) = templates(warm)
    assert new != template
    assert warm.log().count("the template torch is ready") == 2
    warm.tsctl("scale", "warm", "2")


def test_workers_share_the_weights_of_a_model_whose_initialize_is_ours(warm: Served) -> None:
    loads = warm.folder / "loads"
    source = (
        f"import torch\nwith open({str(loads)!r}, 'a') as file: file.write('x')\n"
        "class Net(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
    )
    (warm.folder / "double.py").write_text(source)

    warm.register_built_in("base_handler", "double", "--workers", "2", model_file=warm.folder / "double.py")

    assert warm.ask("/predictions/double", b"[1.5]", content_type="application/json").json == [3.0]
    assert loads.read_text() == "x"
    warm.tsctl("unregister", "double")


def test_a_model_that_hangs_while_its_template_loads_it_meets_the_startup_timeout(warm: Served) -> None:
    (warm.folder / "hangs.py").write_text("import time\nimport torch\ntime.sleep(600)\n")
    before = set(children(warm.pid))  # of which one may end meanwhile

    archive = warm.pack_built_in("base_handler", "hangs", model_file=warm.folder / "hangs.py")
    failed = warm.run("register", archive, "--startup-timeout", "1")

    assert failed.returncode == 1
    assert "startup timeout of 1 s" in failed.stderr
    eventually(lambda: set(children(warm.pid)) <= before, "neither worker nor template is left")


def test_where_no_model_needs_torch_nobody_imports_it(idle: Served) -> None:
    idle.environment["TSCTL_TEMPLATE"] = "true"

    idle.start("--models", idle.pack("echo"))
    eventually(lambda: idle.ask("/ready").status == 200, "the model is ready")

    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(idle.pid)]
    assert commands and all(b"tsctl.handlers.worker" in command for command in commands)
