"""TorchServe's own repository, tried with tsctl: its start lines, configurations, model-config files and tests.

The checkout is named by `TORCHSERVE_CHECKOUT`; nothing of it is kept here.
"""
