"""A worker keeps the memory that a batch has freed for the next one, and gives it back while it is idle."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy
from tsctl.handlers.own_process import give_memory_back, keep_memory

def faults_of_a_batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    first, second = numpy.ones(SIZE, "u1"), numpy.ones(SIZE, "u1")
    del first, second
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

keep_memory()
faults = [faults_of_a_batch() for _ in range(4)]
kept = resident()
give_memory_back()
print(max(faults[2:]), kept - resident())
"""
PAGE = 4096


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [1, 30, 100])
def test_a_batch_gets_the_memory_of_the_one_before_and_an_idle_worker_keeps_none(megabytes: int) -> None:
    size = megabytes * 2**20
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("SIZE", str(size))], capture_output=True, text=True, check=True, env={}
    )

    faults, returned = map(int, ran.stdout.split())

    assert faults < 0.05 * size / PAGE
    assert returned > 1.8 * size / PAGE
