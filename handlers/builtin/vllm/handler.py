"""`vllm_handler`: vLLM's engine behind OpenAI's API, as TorchServe's handler of that name.

Its worker runs requests as they come (`asyncCommunication: true`); the engine makes its own batches. The calls are
those of OpenAI's API, at `/v1/…` and below `/predictions/MODEL/1.0/…`. vLLM is an optional package, imported here only.

Of vLLM the interface that has been the same for years is used: `AsyncLLMEngine.generate`, `abort` and `get_tokenizer`,
not its HTTP server's classes, which change with every release.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.handlers.envelopes.openai_wording import STOP, Wording, usage_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, PredictionException
from tsctl.handlers.sdk.streaming import send_intermediate_predict_response

# Members that vLLM's `SamplingParams` has under the same name.
_SAME = (
    "max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids",
    "ignore_eos", "presence_penalty", "frequency_penalty", "repetition_penalty", "skip_special_tokens",
)  # fmt: skip
# Members that are refused unless they say what is done anyway.
_ONLY: dict[str, tuple[object, ...]] = {
    "n": (1,), "best_of": (1,), "echo": (False,), "suffix": ("",), "tools": ([],), "tool_choice": ("none",),
    "response_format": ({"type": "text"},), "logit_bias": ({},), "top_logprobs": (0,), "prompt_logprobs": (),
}  # fmt: skip


def request_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request.

    At `/v1/…` each is a part of the row; at `/predictions/MODEL/1.0/v1/…` they are the JSON of its body.

    Raises:
        PredictionException: the body is no JSON object (400).
    """
    if "model" in row:
        return {name: value for name, value in row.items() if name != "data"}
    body = row.get("data") or row.get("body")
    if not isinstance(body, dict):
        raise PredictionException("The request is no JSON object; send it with `Content-Type: application/json`.", 400)
    return body


def sampling_of(request: Mapping[str, Any], *, chat: bool) -> dict[str, Any]:
    """Return the keyword arguments of `SamplingParams` for a request.

    Raises:
        PredictionException: a member is not supported (400).
    """
    for name, allowed in _ONLY.items():
        value = request.get(name)
        if value is not None and value not in allowed:
            raise PredictionException(f"`{name}` is {value!r}, which is not supported here.", 400)
    if chat and request.get("logprobs"):
        raise PredictionException("`logprobs` of a chat are not supported here.", 400)
    found = {name: request[name] for name in _SAME if request.get(name) is not None}
    if chat and request.get("max_completion_tokens") is not None:
        found["max_tokens"] = request["max_completion_tokens"]
    if not chat and request.get("logprobs") is not None:
        found["logprobs"] = request["logprobs"]
    return found


def logprobs_of(tokens: list[int], found: list[Mapping[int, Any]] | None, offset: int = 0) -> Any:
    """Return the API's `logprobs` of a text; None if vLLM tells none.

    Args:
        tokens: the numbers of the text's tokens.
        found: for each, token number → an object with `logprob` and `decoded_token`.
        offset: characters of the answer before this text.
    """
    if found is None:
        return None
    words = [each[number].decoded_token or "" for number, each in zip(tokens, found, strict=True)]
    offsets, at = [], offset
    for word in words:
        offsets.append(at)
        at += len(word)
    return {
        "tokens": words,
        "token_logprobs": [each[number].logprob for number, each in zip(tokens, found, strict=True)],
        "top_logprobs": [{one.decoded_token or "": one.logprob for one in each.values()} for each in found],
        "text_offset": offsets,
    }


MODELS, COMPLETIONS, CHAT = "v1/models", "v1/completions", "v1/chat/completions"
_INSTALL = "vllm_handler needs vLLM, which is not installed: name `vllm` in the archive's requirements, or install it"


class VLLMHandler:
    """Answers completions and chats.

    Configuration, below `handler` in model-config.yaml:
        vllm_engine_config: arguments of vLLM's engine; `served_model_name` are names by which clients may ask.
        model_path: the model, in the archive or anywhere else, where the engine's `model` is not named.
        adapters: name → path of a LoRA adapter, which a client asks for as `model`.
        chat_template: of Jinja; the tokenizer's own without it.
    """

    def initialize(self, context: Context) -> None:
        """Start the engine.

        Raises:
            HandlerError: vLLM is not installed, or the configuration cannot be used.
        """
        config = context.model_yaml_config.get("handler") or {}
        if context.model_yaml_config.get("asyncCommunication") is not True:
            raise HandlerError("vllm_handler needs `asyncCommunication: true` in model-config.yaml")
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")  # CUDA does not survive a fork
        try:
            import vllm
        except ImportError as error:
            raise HandlerError(f"{_INSTALL} ({error})") from None
        directory = Path(context.system_properties["model_dir"])
        arguments = engine_arguments(config, directory)
        made = vllm.AsyncEngineArgs(model=arguments.pop("model"))
        unknown = [name for name in arguments if not hasattr(made, name)]
        if unknown:
            raise HandlerError(f"vllm_engine_config: vLLM knows no {', '.join(unknown)}")
        for name, value in arguments.items():
            setattr(made, name, value)
        self.vllm_engine: Any = vllm.AsyncLLMEngine.from_engine_args(made)
        self.sampling: Any = vllm.SamplingParams
        self.adapters = {name: within(directory, path) for name, path in (config.get("adapters") or {}).items()}
        self.chat_template = config.get("chat_template")
        named = arguments.get("served_model_name") or [made.model]
        self.names = [named] if isinstance(named, str) else list(named)
        loop = asyncio.get_event_loop()
        self.longest = loop.run_until_complete(self.vllm_engine.get_model_config()).max_model_len
        self.tokenizer = loop.run_until_complete(self.vllm_engine.get_tokenizer())

    async def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        """Answer one request.

        Raises:
            PredictionException: the path is unknown, or the request is invalid or not supported.
        """
        path = context.get_request_header(0, "url_path")
        if path == MODELS:
            return [self._models()]
        if path not in (COMPLETIONS, CHAT):
            raise PredictionException(f"Unknown API endpoint: {path}", 404)
        [row] = data
        request, chat = request_of(row), path == CHAT
        name = str(request.get("model"))
        adapter = self._adapter(name, context)
        prompt = self._prompt(request, chat=chat)
        chosen = sampling_of(request, chat=chat)
        if chat and "max_tokens" not in chosen:
            chosen["max_tokens"] = max(1, self.longest - len(self.tokenizer.encode(prompt)))
        try:
            sampling = self.sampling(**chosen)
        except (TypeError, ValueError) as error:
            raise PredictionException(str(error), 400) from None
        wording = Wording(context.get_request_id(0) or "", name, chat=chat)
        answers = self._answers(prompt, sampling, adapter, context)
        if request.get("stream"):
            with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
            return [await self._stream(answers, wording, context, with_usage=with_usage)]
        final = [output async for output in answers][-1]
        said = final.outputs[0]
        logprobs = logprobs_of(list(said.token_ids), said.logprobs)
        return [wording.whole(said.text.encode(), said.finish_reason or STOP, _usage(final), logprobs)]

    async def _answers(self, prompt: Any, sampling: Any, adapter: Any, context: Context) -> Any:
        """Yield the engine's outputs, each with all of the text so far; end the engine's work if nobody waits."""
        name = context.get_request_id(0)
        try:
            async for output in self.vllm_engine.generate(prompt, sampling, name, lora_request=adapter):
                yield output
        except (asyncio.CancelledError, GeneratorExit):
            await self.vllm_engine.abort(name)
            raise
        except ValueError as error:  # such as a prompt that is too long
            raise PredictionException(str(error), 400) from None

    async def _stream(self, answers: Any, wording: Wording, context: Context, *, with_usage: bool) -> bytes:
        """Send pieces as events, and return the last ones."""
        context.set_response_content_type(0, "text/event-stream; charset=utf-8")
        text, tokens, final = "", 0, None
        last = b""
        async for final in answers:
            said = final.outputs[0]
            piece, new = said.text[len(text) :], list(said.token_ids)[tokens:]
            found = None if said.logprobs is None else list(said.logprobs)[tokens:]
            logprobs = logprobs_of(new, found, len(text))
            events = wording.chunk(piece.encode("utf-8", "replace"), logprobs)
            text, tokens = said.text, tokens + len(new)
            if final.finished:
                last = events
            elif events:
                send_intermediate_predict_response([events], context.request_ids, "", 200, context)
        reason = STOP if final is None else final.outputs[0].finish_reason or STOP
        usage = _usage(final) if with_usage and final is not None else None
        return last + wording.last_events(b"", reason, usage)

    def _adapter(self, name: str, context: Context) -> Any:
        """Return the adapter that a client asks for as `model`; None for the model itself.

        Raises:
            PredictionException: it is neither (404).
        """
        if name in self.adapters:
            from vllm.lora.request import LoRARequest

            return LoRARequest(name, list(self.adapters).index(name) + 1, self.adapters[name])
        if name not in self.names and name.partition("/")[0] != context.model_name:
            known = ", ".join([*self.names, *self.adapters])
            raise PredictionException(f"The model `{name}` does not exist; there are {known}.", 404)
        return None

    def _prompt(self, request: dict[str, Any], *, chat: bool) -> Any:
        """Return the text, or vLLM's form of token numbers.

        Raises:
            PredictionException: it is missing, or of another kind (400).
        """
        if chat:
            messages = request.get("messages")
            if not isinstance(messages, list) or not messages:
                raise PredictionException("`messages` is missing; expected a list of messages.", 400)
            return self.tokenizer.apply_chat_template(
                messages, chat_template=self.chat_template, tokenize=False, add_generation_prompt=True
            )
        prompt = request.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
            return {"prompt_token_ids": prompt}
        if not isinstance(prompt, str):
            raise PredictionException("`prompt` is missing, or no text; expected one text.", 400)
        return prompt

    def _models(self) -> dict[str, Any]:
        names = [*self.names, *self.adapters]
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "vllm"} for name in names]}


def engine_arguments(config: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return the arguments of vLLM's engine, `model` among them.

    Raises:
        HandlerError: no model is named.
    """
    arguments = dict(config.get("vllm_engine_config") or {})
    if not arguments.get("model"):
        path = config.get("model_path")
        if not path:
            raise HandlerError("handler: name the model, as `model` in vllm_engine_config or as `model_path`")
        arguments["model"] = within(directory, path)
    return arguments


def within(directory: Path, path: str) -> str:
    """Return a path within the archive, if there is one; else the path as it is, such as a name on the model hub."""
    inside = directory / path
    return str(inside) if inside.exists() else path


def _usage(output: Any) -> dict[str, int]:
    return usage_of(len(output.prompt_token_ids or ()), len(output.outputs[0].token_ids))
