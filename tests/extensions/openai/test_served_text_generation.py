"""The example of text generation: a tiny model of transformers, trained here, answers clients that come and go."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.served import PAGE, Served
from tsctl.daemon.marfile import Packing, write_archive

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "text-generation"
SENTENCES = {
    "A batch": " is made of the requests that wait. A request that comes later waits for the next batch.",
    "A token": " is made in each step. A request that comes between two steps joins the next one.",
    "A client": " that leaves takes its request along, and its place is free for another.",
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    subprocess.run([sys.executable, EXAMPLE / "make_weights.py", folder], check=True, capture_output=True, timeout=PAGE)
    return folder


@pytest.fixture
def tiny(idle: Served, weights: Path) -> Served:
    packing = Packing(
        model_name="tiny", version="1.0", handler=str(EXAMPLE / "generator.py"), extra_files=str(weights),
        config_file=EXAMPLE / "model-config.yaml",
    )  # fmt: skip
    idle.start()
    idle.tsctl("register", write_archive(packing, idle.store).name)
    return idle


def completion(served: Served, prompt: str, *, stream: bool) -> str:
    """Return the text after a prompt, whole or put together from its events."""
    answer = served.ask("/v1/completions", json.dumps({"model": "tiny", "prompt": prompt, "stream": stream}).encode())
    assert answer.status == 200, answer.body
    if not stream:
        return str(json.loads(answer.body)["choices"][0]["text"])
    events = answer.body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    pieces = [json.loads(event.removeprefix("data: "))["choices"][0]["text"] for event in events[:-2]]
    assert len(pieces) > 20
    return "".join(pieces)


def test_requests_that_join_and_leave_between_tokens_get_the_answers_that_they_get_alone(tiny: Served) -> None:
    prompts = [*SENTENCES] * 6

    with ThreadPoolExecutor(6) as clients:
        asked = [clients.submit(completion, tiny, each, stream=bool(number % 2)) for number, each in enumerate(prompts)]
        answers = [each.result() for each in asked]

    assert answers == [SENTENCES[each] for each in prompts]


def test_a_client_that_leaves_frees_its_place(tiny: Served) -> None:
    for _ in range(20):  # more than twice the places
        connection = tiny.connect()
        connection.request("POST", "/v1/completions", json.dumps({"model": "tiny", "prompt": "A batch"}).encode())
        connection.close()

    assert completion(tiny, "A token", stream=False) == SENTENCES["A token"]
