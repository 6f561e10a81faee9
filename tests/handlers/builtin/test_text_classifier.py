"""How texts become tokens, and what is said of them; answers are in `conversations/text_classifier.txt`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of, row, write
from tsctl.handlers import wire
from tsctl.handlers.builtin import text_classifier
from tsctl.handlers.builtin.text import TextHandler
from tsctl.handlers.builtin.text_classifier import TextClassifier
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import EntryPoint

# Class 0 likes the tokens with even numbers, class 1 those with odd ones.
NET = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.EmbeddingBag(8, 2, mode="sum")
            with torch.no_grad():
                numbers = torch.arange(8)
                self.embedding.weight.copy_(torch.stack([1.0 - numbers % 2, 1.0 * (numbers % 2)], dim=1))
        def forward(self, numbers, offsets):
            return self.embedding(numbers, offsets)
"""
VOCABULARY = {"<unk>": 0, "good": 1, "bad": 2, "very": 3, "very good": 5, "not": 4, "do": 6}


@pytest.fixture
def archive(model_dir: Path) -> Path:
    write(model_dir / "net.py", NET)
    torch.save(dict(VOCABULARY), model_dir / "source_vocab.pt")
    (model_dir / "index_to_name.json").write_text(json.dumps({"0": "sad", "1": "glad"}))
    return model_dir


def load(archive: Path, **model: str) -> TextClassifier:
    handler = TextClassifier()
    handler.initialize(context_of(archive, {"modelFile": "net.py", **model}))
    return handler


def run(handler: TextHandler, *rows: wire.Row) -> list[wire.Answer]:
    assert handler.context is not None
    return Runtime(EntryPoint(handler, handler.handle), handler.context).run(list(rows))


def test_the_answer_names_the_probability_of_every_class_in_their_order(archive: Path) -> None:
    (answer,) = run(load(archive), row(b"good"))

    # One token of class 1: softmax of (0, 1).
    assert json.loads(answer.body) == pytest.approx({"sad": 0.2689, "glad": 0.7311}, abs=1e-4)
    assert list(json.loads(answer.body)) == ["sad", "glad"]


def test_words_and_pairs_of_cleaned_words_are_looked_up(archive: Path) -> None:
    bags = load(archive).preprocess([{"data": "Don't!"}, {"body": "very GOOD"}])

    assert bags.tokens == [["do", "not", "do not"], ["very", "good", "very good"]]
    assert bags.numbers.tolist() == [6, 4, 0, 3, 1, 5]
    assert bags.offsets.tolist() == [0, 3]


def test_without_an_unknown_token_unknown_words_are_left_out(archive: Path) -> None:
    torch.save({"good": 1}, archive / "source_vocab.pt")

    bags = load(archive).preprocess([{"data": "nothing known"}, {"data": "good grief"}])

    assert bags.tokens == [[], ["good"]]
    assert bags.numbers.tolist() == [1]
    assert bags.offsets.tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_an_explanation_says_how_much_each_token_spoke_for_a_class(archive: Path, mode: str) -> None:
    pytest.importorskip("captum")
    handler = load(archive)
    handler.model.embedding.mode = mode
    rows = [wire.Row(f"r{index}", [("explain", "True")], [("data", "", b"very bad"), ("target", "", target)])
            for index, target in enumerate([b"1", b"0"])]  # fmt: skip

    glad, sad = (json.loads(answer.body) for answer in run(handler, *rows))

    assert glad["words"] == sad["words"] == ["very", "bad", "very bad"]
    # `very` has an odd number; `bad`, and the unknown `very bad`, have even ones.
    assert glad["importances"] == pytest.approx([1, 0, 0], abs=1e-4)
    assert sad["importances"] == pytest.approx([0, 0.5**0.5, 0.5**0.5], abs=1e-4)


def test_a_subclass_may_call_the_steps_of_the_cleaning(archive: Path) -> None:
    handler: Any = load(archive)

    text = handler._remove_html_tags("<i>Isn't</i> é!")
    text = handler._remove_puncutation(handler._remove_accented_characters(handler._expand_contractions(text)))

    assert handler._tokenize(text) == ["is", "not", "e"]
    assert handler.get_word_token(["Ġa", "b"]) == ["a", "b"]


def test_the_texts_of_a_call_are_not_long_together_and_their_tokens_are_looked_up_in_parts(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up, calls = list[int](), list[int]()

    class Noted(TextClassifier):
        def token_numbers(self, tokens: Sequence[str]) -> dict[int, int]:
            looked_up.append(len(tokens))
            return super().token_numbers(tokens)

        def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(len(data.offsets))
            return super().inference(data, *args, **kwargs)

    handler = Noted()
    handler.initialize(context_of(archive, {"modelFile": "net.py"}))
    rows = [row(text, "text/plain") for text in (b"good", b"very good " * 20, b"bad", b"not")]
    together = run(handler, *rows)
    monkeypatch.setattr(text_classifier, "_TOGETHER", 10)
    monkeypatch.setattr(text_classifier, "_LOOKED_UP", 7)
    looked_up.clear()

    apart = run(handler, *rows)

    assert calls == [4, 1, 1, 2]
    assert max(looked_up) == 7
    assert [answer.body for answer in apart] == [answer.body for answer in together]


@pytest.mark.parametrize("vocabulary", [["good"], "good", 5, torch.zeros(2)])
def test_a_vocabulary_that_is_no_mapping_is_refused(archive: Path, vocabulary: object) -> None:
    torch.save(vocabulary, archive / "source_vocab.pt")

    with pytest.raises(
        HandlerError, match=r"^the vocabulary `source_vocab.pt` is a \w+: save a dict, \{token: number\}$"
    ):
        load(archive)
