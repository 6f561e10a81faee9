"""Batching policies: `auto`, `fixed` and `greedy` decide when a batch is due, and how large."""
