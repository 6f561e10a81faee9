"""The control socket and the management address: TorchServe's management API, and our own."""
