#!/usr/bin/env bash
# The first of two commands for a machine with a GPU and torch, but no package index: what it is, the tests that can pass
# there, and a served ResNet-50 beside its loop and its bound. At most nine minutes.
#
# In the clone, with .whl/, which `python -m tests.lab gpu-pack` writes elsewhere. OUT names a folder for the results;
# arguments go to tests.lab.gpu.
set -o pipefail
: "${OUT:?names a folder for the results}"
. "$(dirname "$0")/unpacked.sh"

look() {
    nvidia-smi --query-gpu=index,uuid,name,driver_version,memory.total,compute_mode --format=csv
    ls /proc/driver/nvidia/gpus /dev/nvidia*
    which gcc g++ ptxas nvcc git
    python3 -m pip show torch torchvision pytest pillow numpy msgspec 2> /dev/null | grep -E "^(Name|Version)" | paste - -
    python3 -c "import torch; torch.ones(1, device='cuda'); print(torch.__version__, torch.cuda.get_device_properties(0))"
    python3 -c "import tsctl.daemon.http.connection as compiled; print(compiled.__file__)"
    python3 -m tsctl doctor
}

{
    look
    time timeout 500 python3 -m tests.lab.gpu --page "$OUT/page.md" "$@"
} 2>&1 | tee "$OUT/first.log"
