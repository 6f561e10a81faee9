"""What loading and optimising a model does on a card, in a process of its own on a null one (tests/kit/null_gpu)."""

import json
from typing import Any

import pytest

from tests.kit.null_gpu.cards import cards_or_skip

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

PROGRAM = """
import asyncio, gc, json, os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import torch
from tests.handlers.samples import row, write
from tests.kit.null_gpu.cards import Delta, OnCards
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.support.modelfile import load_model
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.runtime.tasks import TaskRuntime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint, import_file

folder = Path(sys.argv[1])
write(folder / "net.py", '''
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(3, 64, 7, 4), torch.nn.Linear(64, 1 << 17)
        def forward(self, images):
            return self.second(self.first(images).mean((2, 3)))
''')
net = import_file(folder / "net.py").Net().eval()
weights = net.state_dict()
torch.save(weights, folder / "net.pt")
torch.jit.script(net).save(str(folder / "script.pt"))
torch.export.save(torch.export.export(net, (torch.zeros(2, 3, 64, 64),)), folder / "net.pt2")
manifest = {"modelFile": "net.py", "serializedFile": "net.pt"}
context = Context("net", str(folder), {"model": manifest}, batch_size=4, gpu_id=0)
torch.ones(1, device="cuda")
here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
handler = ImageClassifier()
found = {"weights": sum(each.nbytes for each in weights.values())}
with Delta(here) as loading:
    handler.initialize(context)
found["eager"] = [loading["to_card_bytes"], loading["from_card_bytes"]]
for way, name in (("script", "script.pt"), ("exported", "net.pt2")):
    with Delta(here) as loading:
        load_model(folder, {"model": {"serializedFile": name}}, {}, torch.device("cuda:0"))
    found[way] = [loading["to_card_bytes"], loading["from_card_bytes"]]
outcomes = Runtime(EntryPoint(handler, handler.handle), context).optimize(None, folder, 4)
found["applied"] = [each.name for each in outcomes if each.applied]
found["why"] = [each.reason for each in outcomes]
left = here["card_0"]
gc.collect()
torch.cuda.empty_cache()
found["left"] = left - here["card_0"]

class Mine(ImageClassifier):
    def inference(self, data, *args, **kwargs):
        found.setdefault("stage of a user", []).append(str(data.dtype))
        return super().inference(data, *args, **kwargs)

mine = Mine()
mine.initialize(context)
Runtime(EntryPoint(mine, mine.handle), context).optimize(["fast_images", "graph"], folder, 4)
with Delta(here) as batch:
    mine.inference(mine.preprocess([{"body": mine.example()}] * 4))
found["replays"] = batch["replays"]

torch._export.aot_load = lambda path, device: torch.cuda.current_device
(folder / "net.so").write_bytes(b"")
library = load_model(folder, {"model": {"serializedFile": "net.so"}}, {}, torch.device("cuda:1"))
with ThreadPoolExecutor(1) as pool:
    found["the device of a library"] = pool.submit(library).result()

class Awaits:
    async def handle(self, data, context):
        return [{"scores": torch.tensor([0.5, 1.5]).cuda(), "classes": [torch.tensor([7]).cuda()]}]

awaits = TaskRuntime(EntryPoint(Awaits(), Awaits().handle), context)
with Delta(here) as batch:
    answered = asyncio.run(awaits.answer(row(b"x"), print))
found["awaited"] = [json.loads(answered.answer.body), batch["event_syncs"], batch["from_card_pinned"]]
print(json.dumps(found), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (folder := tmp_path_factory.mktemp("model") / "net").mkdir()
    found: dict[str, Any] = json.loads(cards_or_skip(tmp_path_factory.mktemp("null"), 2).run(PROGRAM, str(folder)))
    return found


@pytest.mark.parametrize("way", ["eager", "script", "exported"])
def test_weights_cross_the_bus_once(way: str, seen: dict[str, Any]) -> None:
    beside = 4096  # the kernel that is tried, and what normalises pixels
    there, back = seen[way]

    assert seen["weights"] <= there <= seen["weights"] + beside
    assert back <= beside


def test_a_check_of_optimisations_leaves_no_memory_behind(seen: dict[str, Any]) -> None:
    assert "graph" in seen["applied"], seen["why"]
    assert seen["left"] == 0


def test_a_users_own_stage_gets_normalised_images_and_its_model_has_a_graph(seen: dict[str, Any]) -> None:
    assert {*seen["stage of a user"]} == {"torch.float32"}
    assert seen["replays"] == 1


def test_the_answer_of_a_coroutine_is_waited_for_once_whatever_it_holds(seen: dict[str, Any]) -> None:
    assert seen["awaited"] == [{"scores": [0.5, 1.5], "classes": [[7]]}, 1, 2]


def test_a_library_runs_on_its_card_on_every_thread(seen: dict[str, Any]) -> None:
    assert seen["the device of a library"] == 1
