"""Families of samples and their text, for the extensions that show metrics, and those that choose among them.

text         families, and their text for Prometheus; the operator's choice among them
gpu_values   what is measured of GPUs, by TorchServe's names
host         how busy processor, memory and disk are, by TorchServe's names
"""
