"""What a call over gRPC costs: a program of its own, and the load for comparisons with other servers."""
