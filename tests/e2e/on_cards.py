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
    weights, settings = served.folder / f"{name}.pth", served.folder / f"{name}.yaml"
    torch.save(import_file(ARCHIVES / "small_net.py").SmallNet().state_dict(), weights)
    settings.write_text(f"batchSize: {batch_size}\nmaxBatchDelay: 60000\nbatching: fixed\n{config}")
    return served.pack_built_in(
        "image_classifier", name, model_file=ARCHIVES / "small_net.py", serialized_file=weights, config_file=settings
    )


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
