"""Requests of OpenAI's API as vLLM's sampling parameters. Pure functions: vLLM is not imported."""

from collections.abc import Mapping
from typing import Any

from tsctl.handlers.sdk.errors import PredictionException

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
