"""gRPC without a server yet: the codes of errors, and the messages of TorchServe and the Open Inference Protocol.

No other room imports this one yet. Only `messages` and `proto_reader` import protobuf: the daemon starts without it.
"""
