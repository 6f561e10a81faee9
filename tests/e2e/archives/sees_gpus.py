"""Answers which GPU is the worker's, and those that CUDA would show to its process."""

import os


def handle(data, context):
    gpu = context.system_properties["gpu_id"]
    return data and [f"{gpu} of {os.environ['CUDA_VISIBLE_DEVICES']}" for _ in data]
