"""A description of the machine, for the report."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def facts() -> dict[str, str]:
    """The processor, its usable cores, the memory, the kernel, Python and torch."""
    return {
        "machine": _processor(Path("/proc/cpuinfo").read_text()),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB of memory",
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def _processor(cpuinfo: str) -> str:
    """The model's name, and the instruction sets that matter to torch."""
    found = dict(line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in found.items()}
    flags = fields.get("flags", "").split()
    sets = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_tile") if name in flags]
    return f"{fields.get('model name', platform.machine())}{' (' + ', '.join(sets) + ')' if sets else ''}"
