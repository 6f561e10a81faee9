"""WordLlama: texts as directions, from a table of its tokens."""

from pathlib import Path

import wordllama

here = Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(cache_dir=here, disable_download=True)


def predict(texts: list[str]) -> list[list[float]]:
    return model.embed(texts, norm=True).tolist()
