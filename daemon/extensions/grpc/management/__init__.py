"""Management over gRPC: TorchServe's service and the protocol's repository, answered by HTTP's own routes."""
