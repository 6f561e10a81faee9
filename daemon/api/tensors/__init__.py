"""Inference requests in tensors, for every protocol that has them: their elements are bytes; no NumPy, no torch.

elements, sizes, steps      the elements of a tensor as bytes; read in slices
forms                       a request and an answer; as JSON
requests, answers           JSON → request, answer → JSON or binary data
declared, prepared          what a model declares, and a request as its worker takes it
metadata                    what is told of the server and its models
"""
