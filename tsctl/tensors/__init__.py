"""Inference requests of the Open Inference Protocol, as `tsctl bench` sends them.

requests         a request from a file: the protocol's JSON, or the bytes of the model's one input
"""
