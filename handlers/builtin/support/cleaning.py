"""Cleaning of English texts: tags, contractions, accents, punctuation.

Each function behaves as in TorchServe's text handler, so that a model sees the words of its training.
"""

import re
import string
import unicodedata
from itertools import groupby
from operator import itemgetter

# An HTML tag or entity; the name is TorchServe's.
_ENTITY = "&([a-z0-9]+|#[0-9]{1,6}|#x[0-9a-f]{1,6});"
CLEANUP_REGEX, _ENTITY_REGEX = re.compile(f"<.*?>|{_ENTITY}"), re.compile(_ENTITY)

_ENDINGS = {"'d": " would", "'ll": " will", "'m": " am", "'re": " are", "'s": " is", "'ve": " have", "n't": " not"}
# Word → the endings that are expanded after the word; `'d`, `'ll` and `n't` also followed by `'ve`: `she'd've`.
_ENDINGS_OF = {
    "i": "'d 'll 'm 've", "he": "'d 'll 's", "she": "'d 'll 's", "it": "'d 'll 's", "that": "'d 's",
    "there": "'d 's", "they": "'d 'll 're 've", "we": "'d 'll 're 've", "you": "'d 'll 're 've",
    "what": "'ll 're 's 've", "when": "'s 've", "where": "'s 've", "who": "'ll 's 've", "why": "'s 've",
    "how": "'ll 's", "so": "'ve", "to": "'ve", "will": "'ve", "must": "'ve n't", "might": "'ve n't",
    "could": "'ve n't", "should": "'ve n't", "would": "'ve n't",
    **dict.fromkeys(("are", "did", "does", "do", "had", "has", "have", "is", "may", "need", "ought", "was", "were"),
                    "n't"),
}  # fmt: skip
_IRREGULAR = {
    "ain't": "is not", "can't": "cannot", "can't've": "cannot have", "'cause": "because", "how'd": "how did",
    "how'd'y": "how do you", "where'd": "where did", "let's": "let us", "ma'am": "madam", "o'clock": "of the clock",
    "shan't": "shall not", "sha'n't": "shall not", "shan't've": "shall not have", "so's": "so as",
    "won't": "will not", "won't've": "will not have", "y'all": "you all", "y'all'd": "you all would",
    "y'all'd've": "you all would have", "y'all're": "you all are", "y'all've": "you all have",
}  # fmt: skip


def _contractions() -> dict[str, str]:
    found = dict(_IRREGULAR)
    for word, endings in _ENDINGS_OF.items():
        for ending in endings.split():
            found[word + ending] = word + _ENDINGS[ending]
            if ending in ("'d", "'ll", "n't"):
                found[f"{word}{ending}'ve"] = f"{word}{_ENDINGS[ending]} have"
    return found


CONTRACTIONS = _contractions()
# The longest first: TorchServe finds `can't` in `can't've`, and leaves `cannotve`; nor is its `'cause` an `ecause`
# here. Also within words, as in TorchServe: `spirit's` becomes `spirit is`. By first letters, and only where an
# apostrophe is near: 10 MB without one take 1 s, and took 13. In ASCII alone: otherwise an `s` is also a `ſ`.
_FIRST_PART = max(word.index("'") for word in CONTRACTIONS)
_CONTRACTION = re.compile(
    f"(?=[a-z]{{0,{_FIRST_PART}}}')(?:"
    + "|".join(
        f"{first}(?:{'|'.join(word[1:] for word in words)})"
        for first, words in groupby(sorted(CONTRACTIONS, key=lambda word: (word[0], -len(word))), key=itemgetter(0))
    )
    + ")",
    re.IGNORECASE | re.ASCII,
)
_PART = 64  # characters


def expand_contractions(text: str) -> str:
    """Expand contractions, `don't` → `do not`, and drop all other apostrophes."""

    def written_out(found: re.Match[str]) -> str:
        words = CONTRACTIONS[found[0].lower()]
        return words[0].upper() + words[1:] if found[0][0].isupper() else words

    return _CONTRACTION.sub(written_out, text).replace("'", "")


def remove_accents(text: str) -> str:
    """Strip accents, and drop all other non-ASCII characters, in time in proportion to the text's length.

    Unicode orders the accents after a letter, for which Python takes the square of their number: of 400 000, minutes.
    The order of what is dropped does not matter, so each part of the text is decomposed by itself.
    """
    if text.isascii():
        return text
    parts = (text[start : start + _PART] for start in range(0, len(text), _PART))
    return "".join(unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode() for part in parts)


def remove_tags(text: str) -> str:
    """Drop HTML tags and entities, in time in proportion to the text's length.

    The expression would search the rest of the line for the end of each `<`, so it gets no line beyond its last `>`.
    """
    lines = []
    for line in text.split("\n"):
        end = line.rfind(">") + 1
        lines.append(CLEANUP_REGEX.sub("", line[:end]) + _ENTITY_REGEX.sub("", line[end:]))
    return "\n".join(lines)


def remove_punctuation(text: str) -> str:
    return text.translate(str.maketrans("", "", string.punctuation))


def clean(text: str) -> str:
    """Apply all steps, in TorchServe's order; the text comes out in lower case."""
    return remove_punctuation(remove_accents(expand_contractions(remove_tags(text).lower())))
