"""Inference requests in tensors, for the protocols that have them: their elements are bytes; no NumPy, no torch.

forms                            a request and an answer
elements, sizes                  the elements of a tensor as bytes
json_tensors, json_data, slices  a tensor in JSON, large ones read in slices
declaration_check, parameters    whether a request is one for its model
prepared_request                 how its worker takes it
answers                          a model's answer
metadata, triton_refusals        what is told of the server and its models, and what is not there
"""
