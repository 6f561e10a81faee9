"""Tensors of the Open Inference Protocol in a worker: a row of arrays in, named outputs out."""
