"""Uses torch, and does in its worker what is not easy in a forked process."""

import multiprocessing
import os
import threading

import numpy
import torch

SHARED = torch.rand(400, 400)


def compiled():
    torch._dynamo.reset()
    return torch.compile(lambda x: torch.relu(x) * 2 + 1)(torch.ones(3)).tolist()


def pooled(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.map(abs, [-1, 2])


def in_parallel():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    results = []
    thread = threading.Thread(target=lambda: results.append((SHARED @ SHARED).shape[0]))
    thread.start()
    thread.join()
    numpy.random.rand(400, 400) @ numpy.random.rand(400, 400)
    results.append((SHARED @ SHARED).shape[0])
    torch.set_num_threads(threads)
    return [*results, len(os.listdir("/proc/self/task")) > 1]


WORDS = {
    "nothing": lambda: None,
    "compile": compiled,
    "fork": lambda: pooled("fork"),
    "spawn": lambda: pooled("spawn"),
    "parallel": in_parallel,
}


class Warm:
    def initialize(self, context):
        print("initialized", os.getpid(), flush=True)
        self.drawn = [torch.rand(1).item(), numpy.random.rand()]

    def handle(self, data, context):
        facts = {"pid": os.getpid(), "parent": os.getppid(), "drawn": self.drawn, "threads": torch.get_num_threads()}
        return [{"did": WORDS[row["body"]["do"]](), **facts} for row in data]
