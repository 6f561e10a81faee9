"""A loaded model in a worker: batches in, answers out."""
