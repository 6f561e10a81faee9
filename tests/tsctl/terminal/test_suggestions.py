"""What is suggested for a verb or a model that does not exist."""

import pytest

from tests.kit.said import said_in
from tsctl.cli import VERBS, all_verbs
from tsctl.extension import extensions
from tsctl.terminal.suggestions import SYNONYMS, similar_model, suggest_verb, synonyms

MODELS = [{"name": "resnet", "version": "1.0"}, {"name": "Whisper", "version": "1.0"}]


def test_a_synonym_is_no_verb_and_means_one() -> None:
    found = synonyms()

    assert set(found) & set(all_verbs()) == set()
    assert set(found.values()) <= set(all_verbs())
    assert SYNONYMS.items() <= found.items() and set(SYNONYMS.values()) <= set(VERBS)
    assert len(found) == len(SYNONYMS) + sum(len(each.synonyms) for each in extensions())  # none is of two


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("rm", "unregister"), ("list", "ls"), ("ps", "ls"), ("reload", "restart"), ("invoke", "predict"),
        ("deploy", "register"), ("RM", "unregister"), ("describ", "describe"), ("xyzzy", ""),
    ],
)  # fmt: skip
def test_a_word_means_a_verb(word: str, verb: str) -> None:
    assert suggest_verb(word, all_verbs()) == verb
    stops = ("tpo", "stp", "stopp", "sto", "kill", "shutdown", "STOP!")  # never suggested
    assert "stop" not in {suggest_verb(each, all_verbs()) for each in stops}


@said_in("models_like.txt")
def test_a_model_like_the_typed_one_is_named(given: str) -> str:
    assert similar_model(given, []) == "no model is registered"
    return similar_model(given, MODELS)
