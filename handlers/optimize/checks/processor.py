"""The processor of this machine, by name and by the instructions that decide how fast a model runs."""

from pathlib import Path
from typing import NamedTuple

# Flags of /proc/cpuinfo, Intel's and AMD's first, then ARM's. A virtual machine may hide the name, not these.
WIDTHS = frozenset({"avx2", "avx512f", "asimd", "sve"})
BFLOAT16 = frozenset({"amx_bf16", "avx512_bf16", "bf16", "svebf16"})
INTEGERS_X86 = frozenset({"amx_int8", "avx512_vnni", "avx_vnni"})
INTEGERS = INTEGERS_X86 | {"i8mm", "asimddp"}


class Processor(NamedTuple):
    """`flags` are those named above that the processor has, sorted."""

    name: str
    flags: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({' '.join(self.flags)})"


def read_processor(cpuinfo: str | None = None) -> Processor:
    """Parse the text of /proc/cpuinfo, by default this machine's."""
    if cpuinfo is None:
        cpuinfo = Path("/proc/cpuinfo").read_text()
    facts = dict(line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line)
    facts = {key.strip().lower(): value.strip() for key, value in facts.items()}
    flags = (facts.get("flags") or facts.get("features") or "").split()
    known = sorted((WIDTHS | BFLOAT16 | INTEGERS).intersection(flags))
    return Processor(facts.get("model name", "unknown model"), tuple(known))
