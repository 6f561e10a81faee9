"""Train a tiny language model on a few sentences, for some seconds, and save it as any model of transformers is."""

import sys

import torch
from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel

TEXT = """\
A batch is made of the requests that wait. A request that comes later waits for the next batch.
A token is made in each step. A request that comes between two steps joins the next one.
A client that leaves takes its request along, and its place is free for another.
"""
STEPS = 150


def main(folder: str) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)  # so small a model gains nothing by more, which wait for each other
    tokenizer = ByT5Tokenizer()  # a token is a byte: no vocabulary to fetch
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=512, n_embd=96, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    lines = tokenizer(TEXT.splitlines(), padding=True, return_tensors="pt")
    ids, mask = lines.input_ids, lines.attention_mask
    labels = ids.masked_fill(mask == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
