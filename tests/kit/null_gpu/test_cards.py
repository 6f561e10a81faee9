"""A null card is, to torch, as a card: what it counts, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.null_gpu.cards import ASSERT, Cards, OnCards, cards_or_skip
from tests.places import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

COPIES = """
from tests.kit.null_gpu.cards import Delta, OnCards

here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
names = ("to_card_pinned", "to_card_pageable", "to_card_bytes", "from_card_pinned", "from_card_pageable")
names += ("default_to_card", "default_from_card", "stream_syncs", "device_syncs", "event_syncs", "launches")

def counted(run):
    with Delta(here) as done:
        run()
    return {name: done[name] for name in names if done[name]}

pinned, stream, done = torch.arange(1000.0).pin_memory(), torch.cuda.Stream(), torch.cuda.Event()
there, other = torch.empty(1000, device="cuda"), torch.arange(1000.0)

def staged():
    with torch.cuda.stream(stream):
        there.copy_(pinned, non_blocking=True)
    done.record(stream)
    done.synchronize()

found["pageable"] = counted(lambda: other.cuda())
found["pinned, on a stream"] = counted(staged)
found["to the machine"] = counted(lambda: there.cpu())
found["a kernel"] = counted(lambda: there + there)
found["a matrix"] = counted(lambda: there.view(10, 100) @ there.view(100, 10))
found["equal"] = torch.equal(there.cpu(), other)
thread = threading.Thread(target=torch.cuda.synchronize)
with Delta(here) as done:
    torch.cuda.synchronize()
    torch.cuda.synchronize()
    thread.start()
    thread.join()
found["waits"] = done.waits
"""
GRAPHS = """
model, images = torch.nn.Linear(8, 4).cuda(), torch.zeros(2, 8, device="cuda")

def capture(run):
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        run()
    return graph

with torch.inference_mode():
    model(images)
graph = capture(lambda: model(images).relu())
graph.replay()
graph.replay()
try:
    capture(lambda: model(images).sum().item())
except torch.AcceleratorError as error:
    found["capture"] = str(error).splitlines()[0]
found["graphs"] = [here["captures"], here["failed_captures"], here["replays"], here["captured_launches"] > 0]
"""
MEMORY = """
try:
    torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    found["out of memory"] = str(error)[:44]
taken = torch.empty(1 << 30, dtype=torch.uint8, device="cuda:1")
found["used"] = [here["card_0"] < 1 << 29, here["card_1"]]
sys.path.insert(0, os.getcwd())
library = ctypes.CDLL("libnvidia-ml.so.1")
device, sizes = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
uuid = f"GPU-{torch.cuda.get_device_properties(1).uuid}"
library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device))
library.nvmlDeviceGetMemoryInfo(device, sizes)
found["by NVML"] = [*sizes]
del taken
torch.cuda.empty_cache()
found["freed"], found["peak"] = here["card_1"], here["peak"] - here["memory"] >= 1 << 30
"""
FORK = """
read, write = os.pipe()
if os.fork() == 0:
    try:
        torch.ones(1).cuda()
    except RuntimeError as error:
        os.write(write, str(error).encode()[:51])
    os._exit(0)
os.wait()
found["fork"] = [os.read(read, 100).decode(), here["forks"]]
"""
BROKEN = """
here.break_context()
calls = {"alloc": lambda: torch.empty(1 << 26, device="cuda"), "copy": other.cuda, "kernel": there.relu}
for name, call in {**calls, "sync": torch.cuda.synchronize, "information": torch.cuda.mem_get_info}.items():
    try:
        call()
    except torch.AcceleratorError as error:
        found[name] = [str(error).splitlines()[0], error.error_code]
"""
PROGRAM = f"""
import ctypes, json, os, sys, threading, warnings
from pathlib import Path
import torch

warnings.simplefilter("ignore")
found = {{"seen": [torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(1)]}}
torch.ones(1).cuda()
{COPIES}{GRAPHS}{MEMORY}{FORK}{BROKEN}
print(json.dumps(found), flush=True)
os._exit(0)  # pinned memory that is freed on a broken context ends the process
"""


JUDGED = """
import pytest
import torch

def test_of_numbers():
    assert (torch.ones(2, device="cuda") + 1).tolist() == [2.0, 2.0]

def test_of_what_is_not_raised():
    with pytest.raises(ZeroDivisionError):
        (torch.ones(2, device="cuda") + 1).tolist()

def test_of_nothing_on_a_card():
    assert not torch.ones(2).tolist()

def test_of_a_call_whose_numbers_nobody_reads():
    torch.ones(2, device="cuda") + 1
    pytest.fail("of something else")

def test_of_another_error_beside_numbers():
    (torch.ones(2, device="cuda") + 1).tolist().no_such_method()
"""


COUNT = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(n)); print(n.value)"


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Cards:
    return cards_or_skip(tmp_path_factory.mktemp("null"), 2)


@pytest.fixture(scope="module")
def seen(cards: Cards) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cards.run(PROGRAM))
    return found


def test_torch_sees_cards(seen: dict[str, Any]) -> None:
    assert seen["seen"] == [True, 2, "Null Card"]


def test_copies_are_counted_by_memory_stream_and_size(seen: dict[str, Any]) -> None:
    assert seen["pageable"] == {
        "to_card_pageable": 1, "to_card_bytes": 4000, "default_to_card": 1, "stream_syncs": 1,
    }  # fmt: skip
    assert seen["pinned, on a stream"] == {"to_card_pinned": 1, "to_card_bytes": 4000, "event_syncs": 1}
    assert seen["to the machine"] == {"from_card_pageable": 1, "default_from_card": 1, "stream_syncs": 1}
    assert seen["equal"]


def test_kernels_and_waiting_threads_are_counted(seen: dict[str, Any]) -> None:
    assert (seen["a kernel"], seen["a matrix"]) == ({"launches": 1}, {"launches": 1})
    assert sorted(seen["waits"]) == [1, 2]


def test_graphs_are_counted_and_one_that_waits_for_its_own_kernels_is_refused(seen: dict[str, Any]) -> None:
    assert seen["graphs"] == [1, 1, 2, True]
    assert seen["capture"] == "CUDA error: operation failed due to a previous error during capture"


def test_memory_is_that_of_each_card(seen: dict[str, Any]) -> None:
    assert seen["out of memory"] == "CUDA out of memory. Tried to allocate 3.00 G"
    assert seen["used"] == [True, 1 << 30]
    assert seen["by NVML"] == [2 << 30, 1 << 30, 1 << 30]
    assert (seen["freed"], seen["peak"]) == (0, True)


def test_a_forked_process_cannot_use_them(seen: dict[str, Any]) -> None:
    assert seen["fork"] == ["Cannot re-initialize CUDA in forked subprocess. To ", 1]


def test_after_a_broken_context_every_call_fails_as_on_a_card(seen: dict[str, Any]) -> None:
    failure = ["CUDA error: device-side assert triggered", ASSERT]

    assert [seen[name] for name in ("alloc", "copy", "kernel", "sync", "information")] == [failure] * 5


def test_of_failed_tests_only_those_that_read_what_kernels_should_have_written_are_expected(
    cards: Cards, tmp_path: Path
) -> None:
    (tmp_path / "test_judged.py").write_text(JUDGED)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "tests.kit.null_gpu.numbers"]
    environment = os.environ | cards.environment
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert "3 failed, 2 xfailed" in done.stdout, f"{done.stdout}\n{done.stderr}"


def test_what_a_process_did_is_read_after_its_end(cards: Cards, seen: dict[str, Any]) -> None:
    [process] = [each for each in cards if each["captures"]]

    assert isinstance(process, OnCards)
    assert (process["broken"], process["out_of_memory"] > 0) == (ASSERT, True)


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        ("1", 1),
        ("0,1", 2),
        ("0,0", 0),
        ("2", 0),
        ("1,5,0", 1),
        ("GPU-00000002-0000-0000-0000-000000000000", 1),
        ("", 0),
    ],
)
def test_visible_cards_are_those_of_cuda(cards: Cards, visible: str, count: int) -> None:
    environment = cards.environment | {"CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run([sys.executable, "-S", "-c", COUNT], env=environment, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (f"{count}\n", "")


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        pytest.param(None, 1, id="of parts, CUDA finds one"),
        pytest.param("0", 1, id="the number of a card is its first part"),
        pytest.param("MIG-00000002,MIG-00000001", 1, id="of several, the first"),
        pytest.param("MIG-00000003", 0, id="there are two"),
        pytest.param("1,MIG-00000001", 2, id="a part beside a whole card"),
    ],
)
def test_visible_parts_are_those_of_cuda(tmp_path: Path, visible: str | None, count: int) -> None:
    environment = cards_or_skip(tmp_path, 2, parts=2).environment
    environment |= {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run([sys.executable, "-S", "-c", COUNT], env=environment, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (f"{count}\n", "")
