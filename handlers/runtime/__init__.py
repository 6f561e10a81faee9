"""A loaded model in a worker: batches in, answers out."""

from handlers.moved import adopt

adopt()
