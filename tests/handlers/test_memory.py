"""A worker keeps the memory that a batch has freed for the next one, and gives it back while it is idle."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tsctl.handlers.own_process import malloc_variables

FAULTS = """
import json, resource
import numpy
from tsctl.handlers.own_process import give_memory_back

def faults_of_a_batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    first, second = numpy.empty(SIZE, "u1"), numpy.empty(SIZE, "u1")
    first[:TOUCHED] = second[:TOUCHED] = 1
    del first, second
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

faults = [faults_of_a_batch() for _ in range(4)]
kept = resident()
give_memory_back()
print(json.dumps([max(faults[2:]), kept - resident()]))
"""
# Tensors as torch allocates them, each with a small object; only the addresses of their blocks are taken.
HEAP = """
import ctypes, json, random
libc = ctypes.CDLL(None)
libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]

def tensor(size):
    block = ctypes.c_void_p()
    libc.posix_memalign(ctypes.byref(block), ctypes.c_size_t(64), ctypes.c_size_t(size))
    return block, libc.malloc(drawn.choice((96, 200, 344)))

drawn, before = random.Random(3), libc.sbrk(0)
for _ in range(500):
    size = int(SIZE * drawn.uniform(LEAST, 1))
    for block in (*tensor(size), *tensor(size)):
        libc.free(block)
print(json.dumps((libc.sbrk(0) - before) / (2 * SIZE)))
"""
PAGE = 4096
MIB = 2**20


def in_a_worker(program: str, **values: object) -> Any:
    """Return what a program prints in a process that begins as a worker does."""
    for name, value in values.items():
        program = program.replace(name, str(value))
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=malloc_variables({})
    )
    return json.loads(ran.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "touched"),
    [(MIB, MIB), (30 * MIB, 30 * MIB), (100 * MIB, 100 * MIB), pytest.param(1500 * MIB, 30 * MIB, id="over 1 GiB")],
)
def test_a_batch_gets_the_memory_of_the_one_before_and_an_idle_worker_keeps_none(size: int, touched: int) -> None:
    faults, returned = in_a_worker(FAULTS, SIZE=size, TOUCHED=touched)

    assert faults < 0.05 * touched / PAGE
    assert returned > 1.8 * touched / PAGE


@pytest.mark.parametrize("size", [MIB, 40 * MIB, 1500 * MIB])
@pytest.mark.parametrize("least", [pytest.param(1, id="equal"), pytest.param(0.2, id="of varied sizes")])
def test_500_batches_take_the_memory_of_the_largest(size: int, least: float) -> None:
    assert in_a_worker(HEAP, SIZE=size, LEAST=least) < 1.2


@pytest.mark.parametrize(
    "name", ["GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"]
)
def test_a_malloc_that_the_operator_has_configured_stays_so(name: str) -> None:
    assert malloc_variables({name: "1"}) == {}
