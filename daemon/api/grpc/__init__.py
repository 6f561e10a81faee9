"""gRPC: TorchServe's predictions and gRPC's health checks on a server; messages of the Open Inference Protocol.

No other room imports this one yet: the daemon has no gRPC address. Only `messages` and `proto_reader` import protobuf,
and only `server.load_grpc` imports grpc: the daemon starts without both.
"""
