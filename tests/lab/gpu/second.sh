#!/usr/bin/env bash
# The second of two commands, see first.sh: each optimisation alone (parts.py), and models that a compiler compiles. At most
# nine minutes.
set -o pipefail
. "$(dirname "$0")/unpacked.sh"

{
    time timeout 400 python3 -m tests.lab.gpu.parts
    time timeout 110 env TSCTL_TEST_DEVICE=cuda:0 python3 -m pytest -q -p no:cacheprovider -o faulthandler_timeout=60 \
        -m heavy -W ignore::UserWarning --tb=short \
        tests/handlers/optimize/test_inductor.py tests/handlers/builtin/support/test_modelfile.py
} 2>&1 | tee "$OUT/second.log"
