# Read by first.sh, second.sh, and `make gpu` where there is no package index: puts the carried packages where Python finds
# them, tsctl's compiled modules beside the sources, and what is written into a folder of its own.
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit
place=$(mktemp -d)
python3 -m tests.lab.gpu.unpack "$place/site" || exit
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$place/site" .whl/[!t]*.whl || exit
mkdir "$place/home"
export PYTHONPATH="$place/site:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 TSCTL_TESTED_COMPILED=1
export TORCHINDUCTOR_CACHE_DIR="$place/inductor" HOME="$place/home" XDG_RUNTIME_DIR="$place/home"
