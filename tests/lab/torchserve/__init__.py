"""TorchServe's own tests, run against tsctl: `torchserve` and `torch-model-archiver` are scripts that call it.

The checkout is named by `TORCHSERVE_CHECKOUT`; nothing of it is kept here.
"""
