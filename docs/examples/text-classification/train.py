"""Train a classifier of topics on the sentences of Python's own documentation: `python train.py`.

Writes topics.pth, source_vocab.pt and index_to_name.json beside this file, and prints how many held-out sentences
are right.
"""

import importlib
import inspect
import json
import random
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import torch
from topics_model import TOKENS, Topics
from torch import nn

from tsctl.handlers.builtin.support.cleaning import clean
from tsctl.handlers.builtin.support.tokens import ngrams_iterator, tokenize

HERE = Path(__file__).parent
TOPICS = {
    "numbers": ("decimal", "fractions", "statistics", "random", "math", "datetime"),
    "network": ("socket", "http.client", "http.server", "urllib.request", "ssl", "smtplib", "ftplib", "ipaddress"),
    "files": ("os", "shutil", "pathlib", "zipfile", "tarfile", "tempfile", "glob", "mmap"),
    "text": ("email.message", "string", "textwrap", "csv", "json", "re", "html.parser", "difflib", "gettext"),
}
EPOCHS = 4


def sentences(module: ModuleType) -> list[str]:
    """Return the sentences of a module's docstrings, of at least four words."""
    documented = [inspect.getdoc(module) or ""]
    for _, thing in inspect.getmembers(module):
        if inspect.isclass(thing) or inspect.isroutine(thing):
            documented.append(inspect.getdoc(thing) or "")
        if inspect.isclass(thing):
            documented += [inspect.getdoc(each) or "" for _, each in inspect.getmembers(thing, inspect.isroutine)]
    found = re.split(r"(?<=[.:])\s+|\n\n", "\n\n".join(documented))
    return list(dict.fromkeys(" ".join(each.split()) for each in found if len(each.split()) >= 4))


def tokens_of(text: str) -> list[str]:
    """Cut a text as `text_classifier` does: words, and pairs of words."""
    return list(ngrams_iterator(tokenize(clean(text)), 2))


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # each step is too small to be shared: two threads take ten times as long
    rows = [
        (tokens_of(text), label)
        for label, modules in enumerate(TOPICS.values())
        for name in modules
        for text in sentences(importlib.import_module(name))
    ]
    random.shuffle(rows)
    held_out, training = rows[: len(rows) // 10], rows[len(rows) // 10 :]
    network, size = Topics(), TOKENS
    counted = Counter(token for tokens, _ in training for token in tokens)
    vocabulary = {"<unk>": 0} | {token: place for place, (token, _) in enumerate(counted.most_common(size - 1), 1)}

    def bags(some: list[tuple[list[str], int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        numbers = [[vocabulary.get(token, 0) for token in tokens] for tokens, _ in some]
        ends = torch.tensor([len(each) for each in numbers]).cumsum(0)
        flat = torch.tensor([number for each in numbers for number in each])
        return flat, torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]]), torch.tensor([y for _, y in some])

    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        random.shuffle(training)
        for first in range(0, len(training), 32):
            numbers, offsets, labels = bags(training[first : first + 32])
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(numbers, offsets), labels).backward()
            optimizer.step()
    numbers, offsets, labels = bags(held_out)
    with torch.inference_mode():
        right = int((network(numbers, offsets).argmax(1) == labels).sum())
    torch.save(network.state_dict(), HERE / "topics.pth")
    torch.save(vocabulary, HERE / "source_vocab.pt")
    (HERE / "index_to_name.json").write_text(json.dumps({str(place): name for place, name in enumerate(TOPICS)}))
    print(f"{right} of {len(held_out)} held-out sentences are right; {len(training)} were for training")


if __name__ == "__main__":
    main()
