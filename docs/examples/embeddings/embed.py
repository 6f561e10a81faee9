"""Texts in, directions out: two texts with like meanings have like directions."""

from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

weights = Path(__file__).parent / "all-MiniLM-L6-v2"
tokenizer = AutoTokenizer.from_pretrained(weights)
model = AutoModel.from_pretrained(weights).eval()


def predict(texts: list[str]) -> list[list[float]]:
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        states = model(**tokens).last_hidden_state  # float32, shape (texts, tokens, 384)
    counted = tokens["attention_mask"].unsqueeze(-1)  # 0 where a text is padded
    return torch.nn.functional.normalize((states * counted).sum(1) / counted.sum(1)).tolist()
