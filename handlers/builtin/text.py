"""`TextHandler`: the base of handlers of texts, with a vocabulary and text cleaning."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tsctl.handlers.builtin.base import BaseHandler, lacking, payload_of
from tsctl.handlers.builtin.support import cleaning
from tsctl.handlers.builtin.support.insights import captum_attr
from tsctl.handlers.builtin.support.modelfile import read_weights
from tsctl.handlers.builtin.support.tokens import tokenize
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, UnreadablePayload


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
            HandlerError: the model or the vocabulary is missing, or cannot be loaded.
        """
        super().initialize(context)
        self.initialized = False
        path = Path(self.get_source_vocab_path(context))
        self.source_vocab = read_weights(path, self.model_yaml_config)
        if not hasattr(self.source_vocab, "__contains__") or isinstance(
            self.source_vocab, (str, list, tuple, torch.Tensor)
        ):
            has = type(self.source_vocab).__name__
            raise HandlerError(f"the vocabulary `{path.name}` is a {has}: save a dict, {{token: number}}")
        self.initialized = True

    def get_source_vocab_path(self, ctx: Context) -> str:
        """Return the path of the vocabulary: the manifest's `sourceVocab` (old archives), else `source_vocab.pt`.

        Raises:
            HandlerError: the archive holds no such file.
        """
        name = Path(self.manifest.get("model", {}).get("sourceVocab") or "source_vocab.pt").name
        path = Path(ctx.system_properties["model_dir"]) / name
        if not path.is_file():
            raise HandlerError(f"the archive lacks the vocabulary `{name}`: add it with --extra-files")
        return str(path)

    def decode_row(self, row: Any) -> str:
        """Return one row's text.

        Raises:
            UnreadablePayload: the payload is not a text.
        """
        payload = payload_of(row)
        if payload is None:
            raise lacking(row, "the text as it is")
        if isinstance(payload, (bytes, bytearray)):
            try:
                payload = payload.decode()
            except UnicodeDecodeError as error:
                raise UnreadablePayload(f"The request is not UTF-8 text: {error}") from None
        if not isinstance(payload, str):
            raise UnreadablePayload(f"The request should be a text, not a {type(payload).__name__}")
        return payload

    def token_numbers(self, tokens: Sequence[str]) -> dict[int, int]:
        """Look up tokens; an unknown token becomes `<unk>`, or is left out if the vocabulary lacks `<unk>`.

        Returns:
            Index in `tokens` → number in the vocabulary.
        """
        numbers = {}
        for place, token in enumerate(tokens):
            try:
                numbers[place] = int(self.source_vocab[token])
            except (KeyError, RuntimeError):  # torchtext's vocabularies raise RuntimeError
                if "<unk>" in self.source_vocab:
                    numbers[place] = int(self.source_vocab["<unk>"])
        return numbers

    @functools.cached_property
    def lig(self) -> Any:
        """captum's LayerIntegratedGradients of the model's `embedding`, under TorchServe's name."""
        return captum_attr().LayerIntegratedGradients(self.model, self.model.embedding)

    # The names by which users' subclasses call the cleaning.
    def _remove_html_tags(self, text: str) -> str:
        return cleaning.remove_tags(text)

    def _expand_contractions(self, text: str) -> str:
        return cleaning.expand_contractions(text)

    def _remove_accented_characters(self, text: str) -> str:
        return cleaning.remove_accents(text)

    def _remove_punctuation(self, text: str) -> str:
        return cleaning.remove_punctuation(text)

    _remove_puncutation = _remove_punctuation  # an old misspelling that some handlers call

    def _tokenize(self, text: str) -> list[str]:
        return self.tokenizer(text)

    def get_word_token(self, input_tokens: Sequence[str]) -> list[str]:
        """Remove a byte-pair tokenizer's space markers from the tokens."""
        return [token.replace("Ġ", "") for token in input_tokens]

    def summarize_attributions(self, attributions: torch.Tensor) -> torch.Tensor:
        """Sum attributions over the embedding dimension, and scale them to unit L2 norm.

        Args:
            attributions: shape (1, tokens, width), floating point.

        Returns:
            Shape (tokens,), the same dtype, each value in [-1, 1].
        """
        summed = attributions.sum(dim=-1).squeeze(0)
        length = torch.norm(summed)
        return summed / length if length > 0 else summed
