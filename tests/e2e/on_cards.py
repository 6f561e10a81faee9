"""A daemon on null cards (tests/kit/null_gpu), and models for them."""

import io
from concurrent.futures import ThreadPoolExecutor

import torch
from PIL import Image

from tests.e2e.served import ARCHIVES, Served
from tests.kit.null_gpu.cards import Cards
from tsctl.handlers.sdk.loader import import_file

BATCH = 4
PIXELS = 3 * 224 * 224  # bytes of an image as it goes to the card


def start_on(served: Served, cards: Cards) -> None:
    """Start the daemon; it and its workers have the cards."""
    served.forks = False  # a fork would have the environment of its parent's start
    served.environment |= cards.environment
    served.start()


def pack_image_classifier(served: Served, name: str, *, batch_size: int = BATCH, config: str = "") -> str:
    """Put an archive of a small network into the store, which waits until a batch is full; give its file name."""
    return pack_on_card(served, "image_classifier", "small_net", "SmallNet", name, batch_size, config)


def pack_on_card(
    served: Served, handler: str, file: str, model: str, name: str, batch_size: int = BATCH, config: str = ""
) -> str:
    """Do the same with a model of a file of tests/e2e/archives, and a built-in handler."""
    weights, source = served.folder / f"{name}.pth", ARCHIVES / f"{file}.py"
    config = f"batchSize: {batch_size}\nmaxBatchDelay: 60000\nbatching: fixed\n{config}"
    torch.save(getattr(import_file(source), model)().state_dict(), weights)
    return served.pack_built_in(handler, name, model_file=source, serialized_file=weights, config=config)


def photograph() -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((320, 240)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def send_batch(served: Served, model: str) -> None:
    """Send one full batch of photographs, and see that each is answered."""
    with ThreadPoolExecutor(BATCH) as clients:
        sent = [photograph()] * BATCH
        answers = list(clients.map(lambda body: served.ask(f"/predictions/{model}", body), sent))
    assert [answer.status for answer in answers] == [200] * BATCH, answers
