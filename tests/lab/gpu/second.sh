#!/usr/bin/env bash
# The second of two commands, see first.sh: a network served in several ways (ways.py), and each optimisation alone
# (parts.py), which has the arguments. At most eight minutes.
set -o pipefail
: "${OUT:?names a folder for the results}"
. "$(dirname "$0")/unpacked.sh"

{
    failed=0
    time timeout 200 python3 -m tests.lab.gpu.ways || failed=1
    time timeout 270 python3 -m tests.lab.gpu.parts "$@" || failed=1
    exit $failed
} 2>&1 | tee "$OUT/second.log"
