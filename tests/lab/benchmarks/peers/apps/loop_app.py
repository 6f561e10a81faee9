"""A loop without a server: `python loop_app.py SECONDS BODY…`; it prints figures and answers as JSON."""

import json
import os
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

import models_of_apps as models
import torch

if __name__ == "__main__":
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    run, bodies = models.load(), [Path(name).read_bytes() for name in sys.argv[2:]]
    answers = [run([body])[0].decode() for body in bodies]  # the first ones, which are slow
    times, cpu, began = [time.monotonic()], time.process_time(), time.monotonic()
    while times[-1] < began + float(sys.argv[1]) or len(times) < 4:  # however slow the machine is
        run([bodies[len(times) % len(bodies)]])
        times.append(time.monotonic())
    cpu = time.process_time() - cpu
    shares = statistics.quantiles((after - before for before, after in pairwise(times)), n=100)
    done = len(times) - 1
    figures = {"rate": done / (times[-1] - began), "p50": shares[49], "p95": shares[94], "p99": shares[98]}
    print(json.dumps([figures | {"cpu": cpu / done, "errors": 0}, answers]))
