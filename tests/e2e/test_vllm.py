"""`vllm_handler` behind a real daemon, with a fake of vLLM in the archive (tests/handlers/builtin/vllm/fake)."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import Answer, Served, eventually
from tsctl.daemon.server.extensions import EXTENSIONS

FAKE = Path(__file__).parents[1] / "handlers" / "builtin" / "vllm" / "fake"
CONFIG = """
asyncCommunication: true
handler:
    model_path: "model/llama"
    vllm_engine_config:
        enable_lora: true
        max_model_len: 20
        served_model_name:
            - "meta-llama/Meta-Llama-3.1-8B"
            - "llama3-8b"
    adapters:
        adapter_1: "adapters/one"
"""
LLAMA = "/predictions/llama/1.0/v1/completions"
# Without OpenAI's API as an extension, the handler has its model's own address alone.
SPOKEN = any(each.name == "openai" for each in EXTENSIONS)
ADDRESSES = [(LLAMA, "llama3-8b"), *([("/v1/completions", "llama")] if SPOKEN else [])]
addresses = pytest.mark.parametrize(("target", "model"), ADDRESSES)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with the model `llama`, for all tests of this file that ask it."""
    with Served(tmp_path_factory.mktemp("llama")) as served:
        served.start()
        served.register_built_in("vllm_handler", "llama", config=CONFIG, extra_files=str(FAKE))
        yield served


def ask(served: Served, target: str, **members: Any) -> Answer:
    return served.ask(target, json.dumps(members).encode(), content_type="application/json")


def choice(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["choices"][0]


@pytest.mark.thin
@addresses
def test_completions_and_chats_are_answered_at_both_addresses(llama: Served, target: str, model: str) -> None:
    ours = ask(llama, target, model=model, prompt="a b c", max_tokens=2, temperature=0.8, logprobs=1)
    whole = ask(llama, target, model=model, prompt="a b c")
    messages = [{"role": "user", "content": "hi"}]
    chat = ask(llama, target.replace("completions", "chat/completions"), model=model, messages=messages)

    assert (choice(ours)["text"], choice(ours)["finish_reason"]) == ("a b ", "length")
    assert choice(ours)["logprobs"]["tokens"] == ["a ", "b "]
    assert json.loads(ours.body)["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert (choice(whole)["text"], choice(whole)["finish_reason"]) == ("a b c ", "stop")
    assert choice(chat)["message"]["content"] == "<user> hi <assistant> "


def test_a_stream_has_an_event_for_each_token(llama: Served) -> None:
    options = {"include_usage": True}
    answer = ask(llama, LLAMA, model="llama", prompt="a b c", stream=True, stream_options=options)

    *events, done, nothing = answer.body.decode().split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    *pieces, last, counted = (json.loads(event.removeprefix("data: ")) for event in events)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [piece["choices"][0]["text"] for piece in pieces] == ["a ", "b ", "c "]
    assert last["choices"][0]["finish_reason"] == "stop"
    assert counted["usage"]["total_tokens"] == 6


def test_adapters_and_names_are_listed_and_asked_for(llama: Served) -> None:
    listed = json.loads(llama.ask("/predictions/llama/1.0/v1/models", b"{}").body)
    adapted = ask(llama, LLAMA, model="adapter_1", prompt="a")

    assert [model["id"] for model in listed["data"]] == ["meta-llama/Meta-Llama-3.1-8B", "llama3-8b", "adapter_1"]
    assert choice(adapted)["text"] == "[adapter_1 1 adapters/one] a "


@pytest.mark.parametrize(
    ("members", "status", "message"),
    [
        ({"model": "gone", "prompt": "a"}, 404, "The model `gone` does not exist; there are meta-llama"),
        ({"model": "llama", "prompt": "a", "temperature": -1}, 400, "temperature must be non-negative"),
        ({"model": "llama"}, 400, "`prompt` is missing"),
        ({"model": "llama", "prompt": "a " * 30}, 400, "The prompt has 30 tokens; the model takes 20."),
    ],
)
def test_what_is_wrong_is_said(llama: Served, members: dict[str, Any], status: int, message: str) -> None:
    answer = ask(llama, LLAMA, **members)

    assert answer.status == status
    assert message in json.loads(answer.body)["message"]
    assert ask(llama, LLAMA.replace("completions", "embeddings"), model="llama").status == 404, "no such call"


def test_a_client_that_leaves_ends_the_engines_work(llama: Served) -> None:
    body = json.dumps({"model": "llama3-8b", "prompt": "hang on", "stream": True}).encode()
    with contextlib.closing(llama.connect()) as client:
        client.request("POST", LLAMA, body, {"x-request-id": "left", "Content-Type": "application/json"})
        assert client.getresponse().status == 200
        waiting = ask(llama, LLAMA, model="llama", prompt="a b")  # nobody waits for it
        assert choice(waiting)["text"] == "a b "

    def aborted() -> bool:
        return "left" in choice(ask(llama, LLAMA, model="llama", prompt="aborted"))["text"]

    eventually(aborted, "the engine was told to end the request")


@pytest.mark.parametrize(
    ("config", "further", "reason"),
    [
        ("asyncCommunication: true\n", {}, "vLLM, which is not installed"),
        ("", {"extra_files": str(FAKE)}, "`asyncCommunication: true` in model-config.yaml"),
    ],
)
def test_what_is_needed_is_named(llama: Served, config: str, further: dict[str, str], reason: str) -> None:
    archive = llama.pack_built_in("vllm_handler", "bare", config=f"{config}handler: {{model_path: x}}\n", **further)

    refused = llama.run("register", archive)

    assert (refused.returncode, f"vllm_handler needs {reason}" in refused.stderr) == (1, True), refused.stderr
