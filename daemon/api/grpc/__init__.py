"""gRPC: TorchServe's predictions and gRPC's health checks on a server; messages of the Open Inference Protocol.

Only `messages` imports protobuf, and only `server.load_grpc` imports grpc: a daemon without
`--grpc-address` starts without both.
"""
