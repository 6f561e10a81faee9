"""Text generation with transformers: each call gives every active request its next token."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

MOST = 200  # tokens of an answer, unless the client wants fewer


@dataclass
class Request:
    """An active request: the tokens of its prompt, those of its answer, and what its client has of that."""

    prompt: list[int]
    most: int
    answer: list[int] = field(default_factory=list)
    sent: str = ""


class Generator:
    def initialize(self, context: Any) -> None:
        folder = Path(context.system_properties["model_dir"])
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.active: dict[str, Request] = {}
        self.members: list[str] = []  # whose keys and values are in the cache
        self.cache: Any = None
        self.mask = torch.empty(0)

    def handle(self, data: list[Any], context: Any) -> list[str]:
        for gone in context.cancelled:  # clients that left since the last call
            self.active.pop(gone, None)
        names = list(context.request_ids.values())
        for name, row in zip(names, data, strict=True):
            if row:  # the first call of a request
                prompt = self.tokenizer.encode(row["data"], add_special_tokens=False)
                self.active[name] = Request(prompt, int(row.get("max_tokens") or MOST))
        requests = [self.active[name] for name in names]
        for request, token in zip(requests, self.next_tokens(names, requests), strict=True):
            request.answer.append(token)
        pieces = [self.piece(request) for request in requests]
        last = [
            request.answer[-1] == self.tokenizer.eos_token_id or len(request.answer) >= request.most
            for request in requests
        ]
        for name, ends in zip(names, last, strict=True):
            if ends:
                del self.active[name]
        context.stopping_criteria = [lambda item, ends=ends: ends for ends in last]
        return pieces

    @torch.inference_mode()
    def next_tokens(self, names: list[str], requests: list[Request]) -> list[int]:
        """Return the likeliest next token of each request; the cache serves while the same requests are active."""
        if names == self.members:
            ids = torch.tensor([[request.answer[-1]] for request in requests])
            self.mask = torch.cat([self.mask, torch.ones(len(names), 1, dtype=torch.long)], 1)
        else:
            self.members, self.cache = names, None
            rows = [request.prompt + request.answer for request in requests]
            longest = max(map(len, rows))
            ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
            self.mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        places = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        out = self.model(
            input_ids=ids, attention_mask=self.mask, position_ids=places, past_key_values=self.cache, use_cache=True
        )
        self.cache = out.past_key_values
        return out.logits[:, -1].argmax(1).tolist()

    def piece(self, request: Request) -> str:
        """Return what is new of the answer's text; a character of several tokens comes when it is whole."""
        text = self.tokenizer.decode(request.answer, skip_special_tokens=True).rstrip("\ufffd")
        new, request.sent = text[len(request.sent) :], text
        return new
