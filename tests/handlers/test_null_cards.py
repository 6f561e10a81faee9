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
from tsctl.handlers.builtin.image_segmenter import ImageSegmenter
from tsctl.handlers.builtin.support.modelfile import load_model
from tsctl.handlers.builtin.support.weights import HALF, moved
from tsctl.handlers.builtin.text_classifier import TextClassifier
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

def crossed(loading, model):
    names = ("to_card_bytes", "from_card_bytes", "to_card_pinned", "to_card_pageable", "stream_syncs")
    there = {name.replace("/", "."): each.cpu() for name, each in model.state_dict().items()}
    return {name: loading[name] for name in names} | {
        "equal": all(torch.equal(there[name], each) for name, each in weights.items()),
    }

found["eager"] = crossed(loading, handler.model)
for way, name in (("script", "script.pt"), ("exported", "net.pt2")):
    with Delta(here) as loading:
        model = load_model(folder, {"model": {"serializedFile": name}}, {}, torch.device("cuda:0"))
    found[way] = crossed(loading, model)
found["pieces"] = sum(-(-each.nbytes // HALF) for each in weights.values())

class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tied = torch.nn.Linear(4, 4)
        self.again = self.tied
        self.register_buffer("across", torch.arange(6.0).view(2, 3).t())
        self.register_buffer("few", torch.tensor(True))
        self.register_buffer("none", torch.empty(0, 3))
        self.register_buffer("wave", torch.tensor([1 + 2j, 3 - 4j]))
        self.register_buffer("turned", torch.tensor([1 + 2j, 3 - 4j]).conj())

class Own(Odd):
    def to(self, device):
        found["own way"] = str(device)
        return super().to(device)

for kind in (Odd, Own):
    odd, usual = kind(), kind()
    usual.load_state_dict(odd.state_dict())
    pairs = list(zip(moved(odd, torch.device("cuda:1")).state_dict().values(), usual.state_dict().values()))
    found[kind.__name__] = [all(each.device == torch.device("cuda:1") for each, _ in pairs),
        all(torch.equal(there.cpu().resolve_conj(), here.resolve_conj()) for there, here in pairs),
        odd.again.weight is odd.tied.weight, isinstance(odd.tied.weight, torch.nn.Parameter)]
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

write(folder / "waits.py", '''
    import torch
    class Waits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 7, 4)
        def forward(self, images):
            found = self.first(images).mean((2, 3))
            return found if found.sum().item() < 1e9 else -found
''')
waits = ImageClassifier()
waits.initialize(Context("waits", str(folder), {"model": {"modelFile": "waits.py"}}, batch_size=4, gpu_id=0))
told = {each.name: each for each in Runtime(EntryPoint(waits, waits.handle), context).optimize(None, folder, 4)}
with Delta(here) as batch:
    waits.inference(waits.preprocess([{"body": waits.example()}] * 4))
found["waits"] = [told["graph"].applied, told["graph"].reason, batch["replays"], batch["launches"] > 0]

write(folder / "segments.py", '''
    import torch
    class Segments(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        def forward(self, images):
            return {"out": self.first(images)}
''')
write(folder / "reads.py", '''
    import torch
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.last = torch.nn.EmbeddingBag(2, 8), torch.nn.Linear(8, 3)
        def forward(self, numbers, offsets):
            return self.last(self.embedding(numbers, offsets))
''')
torch.save({"<unk>": 0, "good": 1}, folder / "source_vocab.pt")
small = {"crop": 32, "resize": 32}
for name, handler in (("segments", ImageSegmenter()), ("reads", TextClassifier())):
    manifest = {"model": {"modelFile": f"{name}.py"}}
    own = Context(name, str(folder), manifest, batch_size=4, gpu_id=0, model_yaml_config=small)
    handler.initialize(own)
    Runtime(EntryPoint(handler, handler.handle), own).optimize(None, folder, 4)
    body = handler.example() if name == "segments" else b"a good film"
    for turn in range(2):  # the first one allocates
        with Delta(here) as batch:
            data = [{"body": body} for _ in range(4)]
            handler.prepare(data)
            answers = handler._predict(data)
    found[name] = [len(answers), batch.waits, {each: batch[each] for each in (
        "to_card_pinned", "to_card_pageable", "default_to_card", "to_card_bytes",
        "from_card_pinned", "from_card_pageable", "default_from_card", "replays",
    )}]

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
    did = seen[way]

    assert seen["weights"] <= did["to_card_bytes"] <= seen["weights"] + beside
    assert did["from_card_bytes"] <= beside
    assert did["equal"]


@pytest.mark.parametrize("way", ["eager", "exported"])
def test_they_do_so_from_pinned_memory_and_are_not_waited_for_one_by_one(way: str, seen: dict[str, Any]) -> None:
    did = seen[way]

    assert (did["to_card_pinned"], did["to_card_pageable"]) == (seen["pieces"], 0)
    assert did["stream_syncs"] == 1 + (way == "eager"), "the end, and the kernel that is tried"


@pytest.mark.parametrize("kind", ["Odd", "Own"])
def test_a_module_is_moved_as_torch_moves_it_whatever_its_tensors_are(kind: str, seen: dict[str, Any]) -> None:
    assert seen[kind] == [True] * 4
    assert seen["own way"] == "cuda:1"


def test_a_check_of_optimisations_leaves_no_memory_behind(seen: dict[str, Any]) -> None:
    assert "graph" in seen["applied"], seen["why"]
    assert seen["left"] == 0


def test_a_users_own_stage_gets_normalised_images_and_its_model_has_a_graph(seen: dict[str, Any]) -> None:
    assert {*seen["stage of a user"]} == {"torch.float32"}
    assert seen["replays"] == 1


@pytest.mark.parametrize(
    ("name", "size", "replays"),
    [
        pytest.param("segments", 4 * 3 * 32 * 32, 1, id="images, as bytes, whose classes are in the graph"),
        pytest.param("reads", 4 * 8 * (3 + 2 + 1), 0, id="texts: numbers of words, and of pairs of them, and a start"),
    ],
)
def test_a_batch_crosses_the_bus_in_one_pinned_copy_each_way_and_is_waited_for_once(
    name: str, size: int, replays: int, seen: dict[str, Any]
) -> None:
    answers, waits, did = seen[name]

    assert (answers, waits) == (4, [1])
    assert did == {
        "to_card_pinned": 1, "to_card_pageable": 0, "default_to_card": 0, "to_card_bytes": size,
        "from_card_pinned": 1, "from_card_pageable": 0, "default_from_card": 0, "replays": replays,
    }  # fmt: skip


def test_a_model_that_waits_for_the_card_runs_without_a_graph_and_the_reason_is_told(seen: dict[str, Any]) -> None:
    applied, reason, replays, launches = seen["waits"]

    assert (applied, replays, launches) == (False, 0, True)
    assert "CUDA error: operation" in reason


def test_the_answer_of_a_coroutine_is_waited_for_once_whatever_it_holds(seen: dict[str, Any]) -> None:
    assert seen["awaited"] == [{"scores": [0.5, 1.5], "classes": [[7]]}, 1, 2]


def test_a_library_runs_on_its_card_on_every_thread(seen: dict[str, Any]) -> None:
    assert seen["the device of a library"] == 1
