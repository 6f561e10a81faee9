"""Tensors of the Open Inference Protocol, without NumPy and torch: their elements as bytes. No route uses them yet."""
