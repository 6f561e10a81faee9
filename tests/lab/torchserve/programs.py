"""The programs that TorchServe's tests call, as scripts that call tsctl."""

from pathlib import Path

# As TorchServe's: the command returns when the daemon has started, which goes on writing its log to the same place;
# log files are in `logs` of the working directory. Where TorchServe would write a file of tokens, which tsctl does not,
# the management API is on the control socket only.
_TORCHSERVE = """#!/bin/bash
words=()
foreground=
tokens=yes
for word; do
  case $word in
    --stop) tsctl stop; exit 0 ;;
    --start) ;;
    --foreground) foreground=yes ;;
    --disable-token*) tokens=; words+=("$word") ;;
    *) words+=("$word") ;;
  esac
done
[ -z "$tokens" ] || unset TSCTL_MANAGEMENT_ADDRESS
export LOG_LOCATION=${LOG_LOCATION:-logs}
export METRICS_LOCATION=${METRICS_LOCATION:-logs}
tsctl run "${words[@]}" 2>&1 &
until tsctl status > /dev/null 2>&1; do
  kill -0 $! 2> /dev/null || exit 1
  sleep 0.1
done
echo "Model server started."
[ -z "$foreground" ] || wait
"""
_ARCHIVER = """#!/bin/bash
exec tsctl archive "$@"
"""


def write_programs(folder: Path) -> None:
    """Put `torchserve` and `torch-model-archiver` into a folder."""
    for name, text in (("torchserve", _TORCHSERVE), ("torch-model-archiver", _ARCHIVER)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
