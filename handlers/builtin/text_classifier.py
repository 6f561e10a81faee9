"""`text_classifier`: a text in, the probability of every class out.

TorchServe's handler uses only the first row of a batch; this one passes all rows to the model at once.
"""

from itertools import islice
from typing import Any, NamedTuple

import torch

from tsctl.handlers.builtin.base import decode_rows, input_device, is_prepared, prepare_rows
from tsctl.handlers.builtin.support.cleaning import clean
from tsctl.handlers.builtin.support.insights import attributed, captum_attr
from tsctl.handlers.builtin.support.labels import map_class_to_label
from tsctl.handlers.builtin.support.model_outputs import logits_of
from tsctl.handlers.builtin.support.tokens import ngrams_iterator
from tsctl.handlers.builtin.text import TextHandler
from tsctl.handlers.requests.gpu_copies import on_host, to_device
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.sdk.timer import timed

_LOOKED_UP = 10_000  # tokens at a time: beside one another, those of a text take several times its own memory
_TOGETHER = 2**24  # characters of the texts of one call: each one's tokens take about 40 bytes a character


class Bags(NamedTuple):
    """A batch of texts, as `torch.nn.EmbeddingBag` takes it.

    Attributes:
        numbers: int64, shape (tokens of all rows,): the tokens' numbers in the vocabulary.
        tokens: for each row, its tokens.
        offsets: int64, shape (rows,): the index in `numbers` at which each row begins.
    """

    numbers: torch.Tensor
    tokens: list[list[str]]
    offsets: torch.Tensor


class TextClassifier(TextHandler):
    """For models called as `model(numbers, offsets)`, with words and pairs of words as tokens.

    The answer to a row is an object: class name → probability in [0, 1], in the order of the classes.
    """

    ngrams = 2
    chooses_class = True

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        if type(self).preprocess is not TextClassifier.preprocess:
            return {}
        return prepare_rows(data, self.decode_row)

    def _groups_alike(self, data: list[Any]) -> list[list[int]]:
        """Return rows whose texts are not long together; a long one is alone."""
        groups: list[list[int]] = []
        room = 0
        for index, row in enumerate(data):
            length = len(row.prepared) if is_prepared(row) else 0
            if not groups or length > room:
                groups.append([])
                room = _TOGETHER
            groups[-1].append(index)
            room -= length
        return groups

    @timed
    def preprocess(self, data: list[Any]) -> Bags:
        """Clean the texts and look up their tokens.

        Raises:
            UnreadableRows: some rows are not texts; only for rows that `prepare` has not seen.
        """
        numbers: list[int] = []
        tokens: list[list[str]] = []
        offsets: list[int] = []
        for text in decode_rows(data, self.decode_row):
            offsets.append(len(numbers))
            tokens.append([])
            grams = ngrams_iterator(self._tokenize(clean(text)), self.ngrams)
            while found := list(islice(grams, _LOOKED_UP)):
                known = self.token_numbers(found)
                numbers += known.values()
                tokens[-1] += [found[place] for place in known]
        there = to_device([torch.tensor(each, dtype=torch.int64) for each in (numbers, offsets)], input_device(self))
        return Bags(there[0], tokens, there[1])

    @timed
    def inference(self, data: Bags, *args: Any, **kwargs: Any) -> Any:
        with torch.inference_mode():
            return self.model(data.numbers, data.offsets, *args, **kwargs)

    @timed
    def postprocess(self, data: torch.Tensor) -> list[Any]:
        """Return for each row class name → probability in [0, 1].

        Args:
            data: the model's logits, floating point, shape (rows, classes).
        """
        probabilities = torch.softmax(logits_of(data, "rows, classes"), dim=1)
        return map_class_to_label(on_host(probabilities).tolist(), self.mapping)

    def get_insights(self, text_preprocess: Bags, raw_data: Any, target: Any = 0) -> list[dict[str, Any]]:  # noqa: ARG002
        """Attribute the score of class `target` to the tokens of one text.

        Integrated gradients (Sundararajan et al., ICML 2017) along the tokens' embeddings, from zero. The model's
        embedding must be its attribute `embedding`: a `torch.nn.Embedding`, or an `EmbeddingBag` of mean or sum.

        Returns:
            `words`, the tokens, and `importances`, one number for each, together of unit L2 norm.
        """
        layer = self.model.embedding
        vectors = layer.weight[text_preprocess.numbers].detach().unsqueeze(0)

        def score(embedded: torch.Tensor) -> torch.Tensor:
            # embedded: shape (1, tokens, width). The model runs with `output` in place of its embedding's output.
            if isinstance(layer, torch.nn.EmbeddingBag):
                output = embedded.mean(dim=1) if layer.mode == "mean" else embedded.sum(dim=1)
            else:
                output = embedded.squeeze(0)
            hook = layer.register_forward_hook(lambda *_: output)
            try:
                scores: torch.Tensor = self.model(text_preprocess.numbers, text_preprocess.offsets)
            finally:
                hook.remove()
            return scores

        gradients = captum_attr().IntegratedGradients(score)
        attributions = attributed(gradients, vectors, target, internal_batch_size=1)
        importances = self.summarize_attributions(attributions).tolist()
        return [{"words": self.get_word_token(text_preprocess.tokens[0]), "importances": importances}]
