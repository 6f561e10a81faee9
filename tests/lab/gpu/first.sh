#!/usr/bin/env bash
# The first of two commands for a machine with a GPU and torch, but no package index: what it is, the tests that can pass
# there, and a served ResNet-50 beside its loop. At most nine minutes.
#
# In the clone, with .whl/ (ignored by git; `pip download` and `pip wheel` for that machine's Python fill it): the wheels of
# httptools, msgspec and javaproperties, and tsctl's own, compiled. OUT names a folder for the results.
set -o pipefail
. "$(dirname "$0")/unpacked.sh"

look() {
    nvidia-smi --query-gpu=index,uuid,name,driver_version,memory.total,compute_mode --format=csv
    ls /proc/driver/nvidia/gpus /dev/nvidia*
    which gcc g++ ptxas nvcc git
    python3 -m pip show torch torchvision pytest pillow numpy msgspec 2> /dev/null | grep -E "^(Name|Version)" | paste - -
    python3 - << 'P'
import os

import torch

import tsctl.daemon.http.connection
from tsctl.daemon.core.machine.gpu_memory import read_gpu_memory
from tsctl.daemon.workers.gpus import usable_gpus

torch.ones(1, device="cuda")
memory = read_gpu_memory([os.getpid()], usable_gpus())
print(torch.__version__, torch.cuda.get_device_name(), tsctl.daemon.http.connection.__file__, usable_gpus(), memory)
P
    python3 -c "from tsctl.cli import main; main()" doctor
}

{
    look
    # Not those of a template or of optimisations side by side, which fork the process, nor int8, which is for processors.
    time timeout 170 env TSCTL_TEST_DEVICE=cuda:0 python3 -m pytest -q -p no:cacheprovider -o faulthandler_timeout=90 \
        -W ignore::UserWarning --tb=short --maxfail 40 tests/handlers \
        --ignore tests/handlers/test_template.py --ignore tests/handlers/runtime/test_elsewhere.py \
        --ignore tests/handlers/optimize/test_together.py --ignore tests/handlers/optimize/test_int8.py 2>&1 | tail -150
    time timeout 320 python3 -m tests.lab.gpu --only benchmark --page "$OUT/page.md"
} 2>&1 | tee "$OUT/first.log"
