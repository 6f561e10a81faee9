"""A fake of vLLM: the interface that `vllm_handler` uses, and a model that repeats its prompt, a word a token."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class AsyncEngineArgs:
    model: str
    max_num_seqs: int = 256
    max_model_len: int = 100
    served_model_name: list[str] | None = None
    enable_lora: bool = False


@dataclass
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 1.0
    logprobs: int | None = None
    stop: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must be non-negative, got {self.temperature}.")


class Tokenizer:
    def encode(self, text: str) -> list[int]:
        return list(range(len(text.split())))

    def apply_chat_template(
        self, messages: list[dict[str, Any]], *, chat_template: str | None, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        assert add_generation_prompt and not tokenize
        lines = " ".join(f"<{message['role']}> {message['content']}" for message in messages)
        return f"{lines} {chat_template or '<assistant>'}"


class AsyncLLMEngine:
    """Prompts with a meaning: one that begins with `hang` gets one word, `aborted` gets the names of what was ended."""

    def __init__(self, arguments: AsyncEngineArgs) -> None:
        self._arguments = arguments
        self._aborted: list[str] = []

    @classmethod
    def from_engine_args(cls, arguments: AsyncEngineArgs) -> "AsyncLLMEngine":
        return cls(arguments)

    async def get_model_config(self) -> AsyncEngineArgs:
        return self._arguments

    async def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    async def abort(self, name: str) -> None:
        self._aborted.append(name)

    async def generate(
        self, prompt: Any, sampling: SamplingParams, name: str, lora_request: Any = None
    ) -> AsyncIterator[Any]:
        text = prompt if isinstance(prompt, str) else " ".join(map(str, prompt["prompt_token_ids"]))
        words = list(self._aborted) if text == "aborted" else text.split()
        if len(words) > self._arguments.max_model_len:
            raise ValueError(f"The prompt has {len(words)} tokens; the model takes {self._arguments.max_model_len}.")
        if lora_request is not None:
            words.insert(0, f"[{lora_request.name} {lora_request.number} {lora_request.path}]")
        chosen = words[: sampling.max_tokens]
        for count in range(1, len(chosen) + 1):
            await asyncio.sleep(0)
            last = count == len(chosen)
            yield output_of(chosen[:count], words, sampling, last)
            if text.startswith("hang"):
                await asyncio.get_running_loop().create_future()
        if not chosen:
            yield output_of([], words, sampling, True)


def output_of(said: list[str], words: list[str], sampling: SamplingParams, last: bool) -> Any:
    tokens = list(range(len(said)))
    logprobs = None
    if sampling.logprobs is not None:
        logprobs = [{n: SimpleNamespace(logprob=-float(n), decoded_token=f"{word} ")} for n, word in enumerate(said)]
    reason = None if not last else "stop" if len(said) == len(words) else "length"
    one = SimpleNamespace(
        text="".join(f"{word} " for word in said), token_ids=tokens, finish_reason=reason, logprobs=logprobs
    )
    return SimpleNamespace(outputs=[one], prompt_token_ids=list(range(len(words))), finished=last)
