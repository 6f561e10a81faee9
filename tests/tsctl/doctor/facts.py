"""Facts of a machine on which every check is fine."""

import dataclasses
from typing import Any

from tsctl.doctor.facts import (
    Clocks,
    ConfiguredAddress,
    DoctorFacts,
    GpuFacts,
    Installation,
    MemoryFacts,
    PathAccess,
    ProcessLimits,
    Processors,
    RunningDaemon,
    Space,
)

GIB = 2**30
FINE = DoctorFacts(
    user=1000,
    installation=Installation(version="1.0", python="3.11.7", compiled=True, torch="2.6.0+cpu"),
    daemon=RunningDaemon(),
    invalid="",
    invalid_remedy="",
    socket="/run/user/1000/tsctl/control.sock",
    processors=Processors(
        online=8, allowed=8, quota=None, threads=None, model="Xeon", flags=frozenset({"avx2", "amx_bf16"})
    ),
    memory=MemoryFacts(total=16 * GIB, left=12 * GIB),
    gpus=GpuFacts(),
    shared_memory=Space("/dev/shm", 8 * GIB, 8 * GIB, None),
    limits=ProcessLimits(files=65536, processes=None, cgroup_processes=None),
    addresses=(ConfiguredAddress("--inference-address", "127.0.0.1:8080"),),
    accesses=(PathAccess("state directory", "/state", True, True, 1000, 0o700, True),),
    clocks=Clocks(now=2e9, booted=1.9e9, installed=1.9e9, source="tsc"),
    disks=(Space("/state", 100 * GIB, 50 * GIB, 10**6),),
)


def facts(part: str = "", /, **values: Any) -> DoctorFacts:
    """Return the facts with other values, of a part of them or of all."""
    if part:
        values = {part: dataclasses.replace(getattr(FINE, part), **values)}
    return dataclasses.replace(FINE, **values)
