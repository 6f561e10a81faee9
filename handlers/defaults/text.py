"""`TextHandler`: what handlers of texts share, a vocabulary and the cleaning of texts."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from handlers.context import Context
from handlers.defaults.base import BaseHandler, payload_of
from handlers.defaults.insights import captum_attr
from handlers.defaults.modelfile import read_weights
from handlers.errors import HandlerError, UnreadablePayload
from handlers.text import cleaning
from handlers.text.tokens import tokenize


class TextHandler(BaseHandler):
    """Loads the model, and its vocabulary from `source_vocab.pt`.

    Attributes:
        source_vocab: token → number: a dict, or another object with `[token]`.
        tokenizer: text → tokens.
    """

    def __init__(self) -> None:
        super().__init__()
        self.source_vocab: Any = None
        self.tokenizer = tokenize
        self.input_text: Any = None

    def initialize(self, context: Context) -> None:
        """Load model and vocabulary.

        Raises:
            HandlerError: one of them is not in the archive, or cannot be loaded.
        """
        super().initialize(context)
        self.initialized = False
        path = Path(self.get_source_vocab_path(context))
        self.source_vocab = read_weights(path, self.model_yaml_config, torch.device("cpu"))
        self.initialized = True

    def get_source_vocab_path(self, ctx: Context) -> str:
        """Find the vocabulary: the manifest's `sourceVocab`, which old archives have, else `source_vocab.pt`.

        Raises:
            HandlerError: the archive holds no such file.
        """
        name = Path(self.manifest.get("model", {}).get("sourceVocab") or "source_vocab.pt").name
        path = Path(ctx.system_properties["model_dir"]) / name
        if not path.is_file():
            raise HandlerError(f"the archive lacks the vocabulary `{name}`: add it with --extra-files")
        return str(path)

    def decode_row(self, row: Any) -> str:
        """Read one row's text.

        Raises:
            UnreadablePayload: it is no text.
        """
        payload = payload_of(row)
        if isinstance(payload, (bytes, bytearray)):
            try:
                payload = payload.decode()
            except UnicodeDecodeError as error:
                raise UnreadablePayload(f"The request is no text in UTF-8: {error}") from None
        if not isinstance(payload, str):
            raise UnreadablePayload(f"The request should be a text, not a {type(payload).__name__}")
        return payload

    def token_numbers(self, tokens: Sequence[str]) -> dict[int, int]:
        """Look tokens up; one that the vocabulary lacks is its `<unk>`, and left out if it lacks that too.

        Returns:
            Place in `tokens` → number in the vocabulary.
        """
        numbers = {}
        for place, token in enumerate(tokens):
            try:
                numbers[place] = int(self.source_vocab[token])
            except (KeyError, RuntimeError):  # torchtext's vocabularies raise the latter
                if "<unk>" in self.source_vocab:
                    numbers[place] = int(self.source_vocab["<unk>"])
        return numbers

    @functools.cached_property
    def lig(self) -> Any:
        """captum's LayerIntegratedGradients of the model's `embedding`, under the name that TorchServe gives it."""
        return captum_attr().LayerIntegratedGradients(self.model, self.model.embedding)

    # The names under which users' subclasses call the cleaning.
    def _remove_html_tags(self, text: str) -> str:
        return cleaning.remove_tags(text)

    def _expand_contractions(self, text: str) -> str:
        return cleaning.expand_contractions(text)

    def _remove_accented_characters(self, text: str) -> str:
        return cleaning.remove_accents(text)

    def _remove_punctuation(self, text: str) -> str:
        return cleaning.remove_punctuation(text)

    _remove_puncutation = _remove_punctuation  # an old misspelling, which some call

    def _tokenize(self, text: str) -> list[str]:
        return self.tokenizer(text)

    def get_word_token(self, input_tokens: Sequence[str]) -> list[str]:
        """Take the marks for spaces off the tokens of a byte-pair tokenizer."""
        return [token.replace("Ġ", "") for token in input_tokens]

    def summarize_attributions(self, attributions: torch.Tensor) -> torch.Tensor:
        """Sum attributions over the embedding, the last dimension, and scale them to length one."""
        summed = attributions.sum(dim=-1).squeeze(0)
        length = torch.norm(summed)
        return summed / length if length > 0 else summed
