"""The values that the checks judge. Sizes are bytes; None stands for no limit, or for a value that cannot be read."""

from dataclasses import dataclass
from typing import NamedTuple


class Space(NamedTuple):
    place: str
    total: int
    free: int
    inodes: int | None  # free ones; None where the file system makes them as needed


class PathAccess(NamedTuple):
    """A path as this user sees it.

    Attributes:
        what: its use: `state directory`.
        exists: whether something is there; else the other values are those of the nearest directory above.
        owner: user id.
        mode: permission bits, with the sticky one.
        usable: whether this user may do with it what its use needs.
        private: whether the daemon refuses the directory if others can enter.
    """

    what: str
    path: str
    exists: bool
    directory: bool
    owner: int
    mode: int
    usable: bool
    private: bool = False


class ConfiguredAddress(NamedTuple):
    """An address that the daemon listens on, or would.

    Attributes:
        flag: its setting.
        refusal: name of the error of a bind, such as `EADDRINUSE`; empty if there was none.
        holder: the process that listens there: `nginx, pid 12`; empty if that cannot be seen.
        own: whether the running daemon listens there.
    """

    flag: str
    address: str
    refusal: str = ""
    holder: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """Cores and the instructions of their model.

    Attributes:
        online: cores of the machine.
        allowed: those of this process's affinity.
        quota: cores of the tightest cgroup.
        threads: `OMP_NUM_THREADS`.
    """

    online: int
    allowed: int
    quota: float | None
    threads: int | None
    model: str
    flags: frozenset[str]


class TriedGpu(NamedTuple):
    """A GPU on which torch has tried to run a kernel; `reason` is empty if it could."""

    gpu: int
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """NVIDIA GPUs, and parts of them (MIG).

    Attributes:
        devices: on the PCI bus.
        driver: its version; empty without one.
        found: GPUs of the driver.
        visible: those left by `CUDA_VISIBLE_DEVICES`.
        closed: device files that this user may not open.
        names: of those that are visible, with their memory.
        parts: whether some of them are parts.
        troubles: sentences about GPUs that cannot be used, or the driver.
        tried: each of those that are visible, in their order, up to the first where the driver hung.
        hung: seconds for which torch hung on the GPU after these; 0 if it did not.
    """

    devices: int = 0
    driver: str = ""
    found: int = 0
    visible: int = 0
    closed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    parts: bool = False
    troubles: tuple[str, ...] = ()
    tried: tuple[TriedGpu, ...] = ()
    hung: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """Memory where least is `left`: in the machine, or under the limit of a cgroup above this process, if one is named.

    `total` is the machine's, or that limit.
    """

    total: int
    left: int
    cgroup: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits of processes: `files` is the hard limit, to which the daemon raises its own."""

    files: int | None
    processes: int | None
    cgroup_processes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The time of day, the start of the machine, and when tsctl was installed, in seconds since the epoch.

    Attributes:
        source: the kernel's clock source; empty if unknown.
    """

    now: float
    booted: float | None
    installed: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The installed packages.

    Attributes:
        torch: the version of torch, such as `2.6.0+cpu`; empty without torch.
    """

    version: str
    python: str
    compiled: bool
    torch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDaemon:
    """The daemon that answers on the socket; without one, `pid` is 0.

    Attributes:
        trouble: why a daemon that is there does not answer.
        threads: of each model on the processor: of one worker, and of all.
    """

    pid: int = 0
    version: str = ""
    compiled: bool = False
    trouble: str = ""
    threads: tuple[tuple[int, int], ...] = ()


class InstalledService(NamedTuple):
    """A service that `tsctl install-service` has written.

    Attributes:
        unit: the path of its unit.
        program: the `tsctl` that it runs.
        runs: whether that program is there, and may be run by this user.
    """

    unit: str
    program: str
    runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    user: int
    installation: Installation
    daemon: RunningDaemon
    invalid: str  # why the configuration is invalid; empty if it is valid
    invalid_remedy: str
    socket: str
    processors: Processors
    memory: MemoryFacts
    gpus: GpuFacts
    shared_memory: Space | None
    limits: ProcessLimits
    addresses: tuple[ConfiguredAddress, ...]
    accesses: tuple[PathAccess, ...]
    clocks: Clocks
    disks: tuple[Space, ...]
    services: tuple[InstalledService, ...] = ()
