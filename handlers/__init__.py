"""Worker processes: they load a model, and run batches of requests. Imports go up this list only.

worker  template             the two programs, which a daemon executes by these names
process/                     the connection, threads; how batches follow each other
runtime/                     a loaded model: batches in, answers out
torchserve/                  names of TorchServe that only its users import
optimize/  envelopes/        faster models, checked; wrappers of platforms around requests
builtin/                     the built-in handlers, and the base classes of users' own
requests/                    rows, what they ask for, samples
sdk/                         names for authors of handlers
own_process  gpu_memory      the process itself: its end, cgroup, memory, priority, output; what it holds on GPUs
nvml                         a program, too: the GPUs of this machine
wire  orders  credit  names  messages between the daemon and its workers
"""
