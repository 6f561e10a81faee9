"""TorchServe's own tests, run against tsctl: `torchserve` and `torch-model-archiver` are scripts that call it."""
