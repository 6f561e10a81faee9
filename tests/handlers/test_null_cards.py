"""What loading and optimising a model does on a card, in a process of its own on a null one (tests/kit/null_gpu)."""

from pathlib import Path

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
from tsctl.handlers.builtin.object_detector import ObjectDetector
from tsctl.handlers.builtin.support.modelfile import load_file
from tsctl.handlers.builtin.support.weights import HALF, moved
from tsctl.handlers.builtin.text_classifier import TextClassifier
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.process.pipeline import suits
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
two = torch.tensor([2.0, 3.0])
torch.jit.trace(lambda numbers: numbers * two, torch.zeros(2)).save(str(folder / "traced.pt"))
torch.export.save(torch.export.export(net, (torch.zeros(2, 3, 64, 64),)), folder / "net.pt2")
manifest = {"modelFile": "net.py", "serializedFile": "net.pt"}
context = Context("net", str(folder), {"model": manifest}, batch_size=4, gpu=0)
torch.ones(1, device="cuda")
here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
handler = ImageClassifier()

def check(claim, found, expected):
    assert found == expected, f"{claim}: {found}"

def load_eager():
    handler.initialize(context)
    return handler.model

def load_card(name):
    return load_file(folder / name, torch.device("cuda:0"))

size, beside = sum(each.nbytes for each in weights.values()), 4096  # the kernel that is tried, and what normalises
pieces = sum(-(-each.nbytes // HALF) for each in weights.values())
for load, synced in ((load_eager, 2), (lambda: load_card("net.pt2"), 1), (lambda: load_card("script.pt"), None)):
    with Delta(here) as loading:
        model = load()
    assert size <= loading["to_card_bytes"] <= size + beside, "weights cross the bus once"
    assert loading["from_card_bytes"] <= beside
    there = {name.replace("/", "."): each.cpu() for name, each in model.state_dict().items()}
    assert all(torch.equal(there[name], each) for name, each in weights.items())
    if synced is not None:  # the end, and the kernel that is tried
        check("from pinned memory, and are not waited for one by one",
            [loading[name] for name in ("to_card_pinned", "to_card_pageable", "stream_syncs")], [pieces, 0, synced])

check("a trace's constants go there, too", str(load_card("traced.pt")(torch.zeros(2, device="cuda")).device), "cuda:0")

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
        self.asked = str(device)
        return super().to(device)

for kind in (Odd, Own):
    odd, usual = kind(), kind()
    usual.load_state_dict(odd.state_dict())
    pairs = list(zip(moved(odd, torch.device("cuda:1")).state_dict().values(), usual.state_dict().values()))
    check("a module is moved as torch moves it, whatever its tensors are", [
        all(each.device == torch.device("cuda:1") for each, _ in pairs),
        all(torch.equal(moved.cpu().resolve_conj(), plain.resolve_conj()) for moved, plain in pairs),
        odd.again.weight is odd.tied.weight, isinstance(odd.tied.weight, torch.nn.Parameter),
        getattr(odd, "asked", "")], [True] * 4 + ["cuda:1" if kind is Own else ""])
outcomes = Runtime(EntryPoint(handler, handler.handle), context).optimize(None, folder, 4)
assert "graph" in [each.name for each in outcomes if each.applied], outcomes
left = here["card_0"]
gc.collect()
torch.cuda.empty_cache()
check("a check of optimisations leaves no memory behind", left - here["card_0"], 0)

given = set()

class Mine(ImageClassifier):
    def inference(self, data, *args, **kwargs):
        given.add(data.dtype)
        return super().inference(data, *args, **kwargs)

mine = Mine()
mine.initialize(context)
Runtime(EntryPoint(mine, mine.handle), context).optimize(["fast_images", "graph"], folder, 4)
with Delta(here) as batch:
    mine.inference(mine.preprocess([{"body": mine.example()}] * 4))
check("a user's own stage gets normalised images, and its model has a graph",
    (given, batch["replays"]), ({torch.float32}, 1))

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
waits.initialize(Context("waits", str(folder), {"model": {"modelFile": "waits.py"}}, batch_size=4, gpu=0))
told = {each.name: each for each in Runtime(EntryPoint(waits, waits.handle), context).optimize(None, folder, 4)}
with Delta(here) as batch:
    waits.inference(waits.preprocess([{"body": waits.example()}] * 4))
check("a model that waits for the card runs without a graph",
    [told["graph"].applied, batch["replays"], batch["launches"] > 0], [False, 0, True])
assert "CUDA error: operation" in told["graph"].reason, told["graph"].reason

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
for name, handler, size, replays in (
    ("segments", ImageSegmenter(), 4 * 3 * 32 * 32, 1),  # images, as bytes, whose classes are in the graph
    ("reads", TextClassifier(), 4 * 8 * (3 + 2 + 1), 0),  # numbers of words, of pairs of them, and a start
):
    manifest = {"model": {"modelFile": f"{name}.py"}}
    own = Context(name, str(folder), manifest, batch_size=4, gpu=0, model_yaml_config=small)
    handler.initialize(own)
    Runtime(EntryPoint(handler, handler.handle), own).optimize(None, folder, 4)
    body = handler.example() if name == "segments" else b"a good film"
    for turn in range(2):  # the first one allocates
        with Delta(here) as batch:
            data = [{"body": body} for _ in range(4)]
            handler.prepare(data)
            answers = handler._run_stages(data)
    check("a batch crosses the bus in one pinned copy each way, and is waited for once", [len(answers), batch.waits, *(
        batch[each] for each in ("to_card_pinned", "to_card_pageable", "default_to_card", "to_card_bytes",
        "from_card_pinned", "from_card_pageable", "default_from_card", "replays"))],
        [4, [1], 1, 0, 0, size, 1, 0, 0, replays])

write(folder / "finds.py", Path("tests/e2e/archives/finds_corners.py").read_text())
READ = ["fast_images", "graph"]
for name, kind, asked in (("net", ImageClassifier, READ), ("reads", TextClassifier, []), ("finds", ObjectDetector, [])):
    class Named(kind):
        def initialize(self, context):
            super().initialize(context)
            self.device = str(self.device)
    named = Named()
    own = Context(name, str(folder), {"model": {"modelFile": f"{name}.py"}}, batch_size=4, gpu=0)
    named.initialize(own)
    applied = [each.applied for each in Runtime(EntryPoint(named, named.handle), own).optimize(asked, folder, 4)]
    body = b"a good film" if name == "reads" else example_image()
    with Delta(here) as batch:
        named._run_stages([{"body": body} for _ in range(4)])
    check("a handler may name its device by a text",
        [all(applied), suits(named, False, {}), batch["to_card_pinned"], batch["to_card_pageable"],
        named.load_again().training, str(named.get_device())], [True, True, 1, 0, False, "cuda:0"])

for name, kind, body in (("net", ImageClassifier, example_image()), ("reads", TextClassifier, b"a good film")):
    explains = kind()
    explains.initialize(Context(name, str(folder), {"model": {"modelFile": f"{name}.py"}}, batch_size=4, gpu=0))
    inputs = explains.preprocess([{"body": body}])
    with Delta(here) as explained:
        explains.get_insights(inputs, None, 0)
    check("an explanation comes back in one copy", [explained[each] for each in
        ("from_card_pinned", "from_card_pageable", "default_from_card", "event_syncs")], [1, 0, 0, 1])

torch._export.aot_load = lambda path, device: torch.cuda.current_device
(folder / "net.so").write_bytes(b"")
library = load_file(folder / "net.so", torch.device("cuda:1"))
with ThreadPoolExecutor(1) as pool:
    check("a library runs on its card on every thread", pool.submit(library).result(), 1)

class Awaits:
    async def handle(self, data, context):
        return [{"scores": torch.tensor([0.5, 1.5]).cuda(), "classes": [torch.tensor([7]).cuda()]}]

awaits = TaskRuntime(EntryPoint(Awaits(), Awaits().handle), context)
with Delta(here) as batch:
    answered = asyncio.run(awaits.answer(row(b"x"), print))
check("the answer of a coroutine is waited for once, whatever it holds",
    [json.loads(answered.answer.body), batch["event_syncs"], batch["from_card_pinned"]],
    [{"scores": [0.5, 1.5], "classes": [[7]]}, 1, 2])
class Breaks(torch.nn.Module):
    def forward(self, images):
        here.break_context()
        raise RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")

handler = ImageClassifier()
handler.initialize(context)
handler.model = Breaks()
for claim, call, kind in (
    ("of the batch", lambda: handler._run_stages([{"body": [1.0, 2.0]}]), RuntimeError),
    ("of a file", lambda: load_card("script.pt"), torch.AcceleratorError),
):
    try:
        raised = call()
    except Exception as error:
        raised = error
    check(f"a context that breaks is no fault {claim}", type(raised), kind)
os._exit(0)
"""


def test_what_loads_is_optimised_and_answers_on_a_card_moves_and_waits_no_more_than_it_must(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    cards_or_skip(tmp_path, 2).run(PROGRAM, str(tmp_path / "net"))
