"""The names of the workloads that are more than wrk on one model, for servers that some of them do not suit."""

KILL = "kill"
GRPC = "grpc"
BESIDE = "beside"
TYPED = "flowers"
TEXT = "text"
