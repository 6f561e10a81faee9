"""The checks, and all of them in the order in which they are shown."""

from collections.abc import Callable
from typing import NamedTuple

from tsctl.daemon.paths import SOCKET_PATH_LIMIT
from tsctl.daemon.workers.cores import crowding
from tsctl.doctor.facts import ConfiguredAddress, DoctorFacts, PathAccess, Space
from tsctl.render import bytes_text

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Verdict(NamedTuple):
    """The answer of one check.

    Attributes:
        state: `ok`; `warning`: serving works, but slower or not for all; `problem`: something would break serving.
        text: the value that was found.
        remedy: what to do; empty if nothing is to be done.
    """

    state: str
    text: str
    remedy: str = ""


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return one answer of several: the state and remedies of the worst ones, and their texts."""
    for state in (PROBLEM, WARNING):
        found = [each for each in verdicts if each.state == state]
        if found:
            texts, remedies = ("; ".join(dict.fromkeys(each[index] for each in found)) for index in (1, 2))
            return Verdict(state, texts, remedies)
    return Verdict(OK, "; ".join(each.text for each in verdicts))


MIB, GIB = 2**20, 2**30
LITTLE_MEMORY, NO_MEMORY = GIB, 128 * MIB  # a worker with torch takes about 300 MiB
LITTLE_SHARED = 256 * MIB  # Docker's default of 64 MiB is too little for processes that hand tensors to each other
_ASK_DRIVER = "see what `nvidia-smi` and `dmesg` tell of the driver"
FAST_BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16", "svebf16")  # of /proc/cpuinfo: Intel and AMD, then ARM


def cores(facts: DoctorFacts) -> Verdict:
    """Check how many cores this process may use."""
    found = facts.processors
    text = f"{_count(found.online, 'core')}"
    if found.allowed < found.online:
        text += f", {found.allowed} allowed by the affinity"
    if found.quota is not None:
        text += f", {found.quota:g} by the cgroup's quota"
    usable = min(found.allowed, found.quota or found.allowed)
    if usable < 1:
        return Verdict(WARNING, f"{text}: each batch waits for its share", "raise the cgroup's quota to a core or more")
    if found.threads is not None and found.threads > usable:
        text += f"; OMP_NUM_THREADS is {found.threads}"
        return Verdict(WARNING, f"{text}: threads wait for each other", "unset OMP_NUM_THREADS")
    threads = facts.daemon.threads
    most = max((each for each, _ in threads), default=0)
    crowded = crowding(max(1, int(usable)), most, [in_all for _, in_all in threads])
    if crowded is not None:
        told, remedy = crowded
        return Verdict(WARNING, f"{text}; {told}", remedy)
    return Verdict(OK, text)


def processor(facts: DoctorFacts) -> Verdict:
    """Check for fast bfloat16, which `--optimize bf16` needs."""
    fast = [flag for flag in FAST_BFLOAT16 if flag in facts.processors.flags]
    if not fast:
        return Verdict(OK, f"{facts.processors.model}; no fast bfloat16: `--optimize bf16` is refused on it")
    return Verdict(OK, f"{facts.processors.model}; fast bfloat16: {', '.join(fast)}")


def memory(facts: DoctorFacts) -> Verdict:
    """Check the free memory of the machine and of the cgroup."""
    found = facts.memory
    text = f"{bytes_text(found.left)} free of {bytes_text(found.total)}"
    if found.cgroup:
        text += f", the limit of {found.cgroup}"
    if found.left < NO_MEMORY:
        return Verdict(PROBLEM, f"{text}: no worker can start", "end other programs, or raise the limit")
    if found.left < LITTLE_MEMORY:
        return Verdict(WARNING, f"{text}: two or three workers", "end other programs, or raise the limit")
    return Verdict(OK, text)


def gpu(facts: DoctorFacts) -> Verdict:
    """Check that each NVIDIA GPU has a driver, can be opened, and runs a kernel of torch."""
    found = facts.gpus
    if not found.found:
        if found.troubles:
            return Verdict(WARNING, f"{'; '.join(found.troubles)}: models run on the processor", _ASK_DRIVER)
        if found.devices:
            text = f"{_count(found.devices, 'NVIDIA GPU')} without a driver: models run on the processor"
            return Verdict(WARNING, text, "install the NVIDIA driver; in a container: `docker run --gpus all`")
        return Verdict(OK, "none; models run on the processor")
    text = f"{_count(found.found, 'NVIDIA GPU')}, driver {found.driver or 'unknown'}"
    if found.parts:
        text += ", parts (MIG) as one each"
    if found.visible < found.found:
        text += f", {found.visible} left by CUDA_VISIBLE_DEVICES"
    if found.names:
        text += f": {', '.join(found.names)}"
    if not found.visible:
        return Verdict(WARNING, f"{text}: models run on the processor", "unset CUDA_VISIBLE_DEVICES")
    if found.closed:
        text += f"; user {facts.user} may not open {', '.join(found.closed)}: workers on a GPU fail"
        return Verdict(PROBLEM, text, "add the user to the group of the device files, or set CUDA_VISIBLE_DEVICES=")
    failed = [each for each in found.tried if each.reason]
    if failed:
        by_reason: dict[str, list[str]] = {}
        for each in failed:
            by_reason.setdefault(each.reason, []).append(f"GPU {each.gpu}")
        reasons = "; ".join(f"{', '.join(gpus)}: {reason}" for reason, gpus in by_reason.items())
        remedies = "; ".join(dict.fromkeys(each.remedy for each in failed))
        text += f"; torch {facts.installation.torch} runs no kernel on {reasons}: workers on a GPU fail"
        return Verdict(PROBLEM, text, f"{remedies}; or serve on the processor: `tsctl start --gpus 0`")
    if found.hung:
        text += f"; torch has hung for {found.hung:g} s on GPU {len(found.tried)}"
        return Verdict(PROBLEM, text, f"{_ASK_DRIVER}; without it: CUDA_VISIBLE_DEVICES")
    if found.troubles:
        return Verdict(WARNING, f"{text}; {'; '.join(found.troubles)}", _ASK_DRIVER)
    return Verdict(OK, text)


def shared_memory(facts: DoctorFacts) -> Verdict:
    """Check the size of /dev/shm; workers themselves do not need it."""
    found = facts.shared_memory
    if found is None:
        text = "no /dev/shm that can be written: handlers that use torch.multiprocessing fail"
        return Verdict(WARNING, text, "mount a tmpfs there")
    text = f"{bytes_text(found.free)} free of {bytes_text(found.total)} in {found.place}"
    if found.free < LITTLE_SHARED:
        text += ": handlers that use torch.multiprocessing or NCCL may fail"
        return Verdict(WARNING, text, "in a container: `docker run --shm-size 1g`; else remove files there")
    return Verdict(OK, text)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


FEW_FILES, NO_FILES = 4096, 256  # a connection takes one; the daemon and each worker some dozens
FEW_PROCESSES, NO_PROCESSES = 512, 64  # threads count; a worker with torch has one or two for each core
LITTLE_DISK, NO_DISK = GIB, 64 * MIB
FEW_INODES = 1000
_FLAGS = {"socket directory": "--socket", "state directory": "--state-dir", "model store": "--model-store"}
LATE = 24 * 3600.0  # seconds that the clock may be behind the installation: time zones of archives
SLOW_SOURCES = ("acpi_pm", "hpet", "pit", "jiffies")  # a reading takes a microsecond or more


def installation(facts: DoctorFacts) -> Verdict:
    """Check that tsctl is compiled, and that torch is there."""
    found = facts.installation
    text = f"tsctl {found.version}, Python {found.python}"
    if not found.torch:
        return Verdict(WARNING, f"{text}; no torch: only handlers without torch load", "`pip install torch`")
    text += f", torch {found.torch}"
    if not found.compiled:
        remedy = "in the clone, `TSCTL_COMPILE=1 pip install .` compiles, or says why not: mostly no C compiler"
        return Verdict(WARNING, f"{text}; not compiled, which would answer 1.6 times the requests a second", remedy)
    return Verdict(OK, f"{text}; compiled")


def daemon(facts: DoctorFacts) -> Verdict:
    """Check whether the daemon that runs is the one that is installed."""
    found = facts.daemon
    if found.trouble:
        return Verdict(PROBLEM, found.trouble, "see `tsctl logs`")
    if not found.pid:
        return Verdict(OK, "none is running")
    text = f"pid {found.pid}, tsctl {found.version}"
    installed = facts.installation
    if (found.version, found.compiled) != (installed.version, installed.compiled):
        text += f"; tsctl {installed.version}{' (compiled)' if installed.compiled else ''} is installed"
        return Verdict(WARNING, text, "`tsctl upgrade`")
    return Verdict(OK, text)


def service(facts: DoctorFacts) -> Verdict:
    """Check that the services that were installed can start."""
    if not facts.services:
        return Verdict(OK, "none; `tsctl install-service` writes one for systemd")
    verdicts = []
    for each in facts.services:
        if each.runs:
            verdicts.append(Verdict(OK, f"`{each.unit}` runs `{each.program}`"))
        else:
            text = f"`{each.unit}` runs `{each.program}`, which is not there, or not for this user"
            verdicts.append(Verdict(WARNING, text, "`tsctl install-service` with the same options writes it again"))
    return worst(verdicts)


def configuration(facts: DoctorFacts) -> Verdict:
    """Check that the settings of the environment are valid."""
    if facts.invalid:
        return Verdict(PROBLEM, facts.invalid, facts.invalid_remedy or "correct the setting")
    return Verdict(OK, "valid")


def files(facts: DoctorFacts) -> Verdict:
    """Check the limit of open files."""
    found = facts.limits.files
    if found is None:
        return Verdict(OK, "no limit")
    text = f"at most {found} open files"
    remedy = "raise the hard limit: `ulimit -Hn`, or `LimitNOFILE=` of a systemd unit"
    if found < NO_FILES:
        return Verdict(PROBLEM, f"{text}: too few for the daemon and a worker", remedy)
    if found < FEW_FILES:
        return Verdict(WARNING, f"{text}: one for each connection", remedy)
    return Verdict(OK, text)


def processes(facts: DoctorFacts) -> Verdict:
    """Check the limits of processes and threads."""
    limits = [each for each in (facts.limits.processes, facts.limits.cgroup_processes) if each is not None]
    if not limits:
        return Verdict(OK, "no limit")
    found = min(limits)
    text = f"at most {found} processes and threads"
    remedy = "raise the limit: `ulimit -u`, `TasksMax=` of a systemd unit, or `docker run --pids-limit`"
    if found < NO_PROCESSES:
        return Verdict(PROBLEM, f"{text}: too few for a worker with torch", remedy)
    if found < FEW_PROCESSES:
        return Verdict(WARNING, f"{text}: a few workers with torch", remedy)
    return Verdict(OK, text)


def ports(facts: DoctorFacts) -> Verdict:
    """Check that the daemon can listen on its addresses."""
    if not facts.addresses:
        return Verdict(OK, "not known" if facts.invalid else "no TCP address is configured")
    return worst([_port(each) for each in facts.addresses])


def _port(found: ConfiguredAddress) -> Verdict:
    if found.own:
        return Verdict(OK, f"{found.address}: the daemon's")
    if not found.refusal:
        return Verdict(OK, f"{found.address}: free")
    if found.refusal == "EADDRINUSE":
        by = f" by {found.holder}" if found.holder else " by another process"
        return Verdict(PROBLEM, f"{found.address} is in use{by}", f"end it, or choose another `{found.flag}`")
    if found.refusal == "EACCES":
        remedy = f"choose a `{found.flag}` with a port of 1024 or more"
        return Verdict(PROBLEM, f"{found.address}: this user may not listen there", remedy)
    if found.refusal == "EADDRNOTAVAIL":
        remedy = f"choose another `{found.flag}`, such as 0.0.0.0"
        return Verdict(PROBLEM, f"{found.address} is no address of this machine", remedy)
    return Verdict(PROBLEM, f"{found.address}: {found.refusal}", f"choose another `{found.flag}`")


def permissions(facts: DoctorFacts) -> Verdict:
    """Check that the daemon can use its directories, and nobody else those that must be private."""
    verdicts = [_permission(each, facts.user) for each in facts.accesses]
    length = len(facts.socket.encode())
    if length > SOCKET_PATH_LIMIT:
        text = f"the socket's path has {length} bytes, and the kernel takes at most {SOCKET_PATH_LIMIT}"
        verdicts.append(Verdict(PROBLEM, text, "choose a shorter `--socket`"))
    return worst(verdicts) if verdicts else Verdict(OK, "no directory is configured")


def _permission(found: PathAccess, user: int) -> Verdict:
    text = f"{found.what} {found.path}"
    another = f"choose another with `{_FLAGS.get(found.what, '--state-dir')}`"
    access = f"{another}, or give user {user} access"
    if not found.exists:
        if found.what == "model store":
            return Verdict(
                PROBLEM, f"{text} is not there: nothing can be registered from it", f"`mkdir -p {found.path}`"
            )
        if not found.usable:
            return Verdict(PROBLEM, f"{text}: user {user} cannot make it", access)
        return Verdict(OK, f"{text}: will be made")
    if not found.directory:
        return Verdict(PROBLEM, f"{text} is no directory", another)
    foreign = found.owner != user if found.private else found.owner not in (user, 0)
    if foreign and found.what != "model store":
        return Verdict(PROBLEM, f"{text} belongs to user {found.owner}, and must be user {user}'s", another)
    if found.private and found.mode & 0o077:
        return Verdict(PROBLEM, f"{text}: others can enter (mode {found.mode:o})", f"`chmod 700 {found.path}`")
    if not found.usable:
        return Verdict(PROBLEM, f"{text}: user {user} may not use it", access)
    if found.what == "model store" and found.mode & 0o002:
        return Verdict(WARNING, f"{text}: every user can change the code that is served", f"`chmod o-w {found.path}`")
    if found.what == "socket directory" and found.mode & 0o1002 == 0o002:
        return Verdict(WARNING, f"{text}: every user can put a socket in its place", f"`chmod o-w {found.path}`")
    return Verdict(OK, text)


def clock(facts: DoctorFacts) -> Verdict:
    """Check that the time is possible, and its source fast."""
    found = facts.clocks
    if found.now < found.installed - LATE or (found.booted is not None and found.now < found.booted):
        text = "the time of day is in the past: certificates and logs are wrong"
        return Verdict(WARNING, text, "set the clock: `timedatectl set-ntp true`")
    if found.source in SLOW_SOURCES:
        text = f"clock source {found.source}: each reading is slow"
        return Verdict(WARNING, text, "let the kernel use `tsc` or `kvm-clock`")
    return Verdict(OK, f"sane{f', source {found.source}' if found.source else ''}")


def disk(facts: DoctorFacts) -> Verdict:
    """Check the free space for archives, logs and temporary files."""
    return worst([_space(each) for each in facts.disks]) if facts.disks else Verdict(OK, "no directory is configured")


def _space(found: Space) -> Verdict:
    text = f"{found.place}: {bytes_text(found.free)} free of {bytes_text(found.total)}"
    if found.free < NO_DISK:
        return Verdict(PROBLEM, f"{text}: no archive can be unpacked", "remove files, or choose another `--state-dir`")
    if found.inodes is not None and found.inodes < FEW_INODES:
        text += f", {found.inodes} inodes free"
        return Verdict(PROBLEM if not found.inodes else WARNING, text, "remove files: there are too many small ones")
    if found.free < LITTLE_DISK:
        return Verdict(WARNING, text, "remove files, or choose another `--state-dir`")
    return Verdict(OK, text)


CHECKS: dict[str, Callable[[DoctorFacts], Verdict]] = {
    "installation": installation,
    "daemon": daemon,
    "service": service,
    "configuration": configuration,
    "addresses": ports,
    "permissions": permissions,
    "disk": disk,
    "cores": cores,
    "processor": processor,
    "memory": memory,
    "GPU": gpu,
    "shared memory": shared_memory,
    "open files": files,
    "processes": processes,
    "clock": clock,
}


def examine(facts: DoctorFacts) -> dict[str, Verdict]:
    return {name: check(facts) for name, check in CHECKS.items()}


def breaks_serving(verdicts: dict[str, Verdict]) -> bool:
    return any(each.state == PROBLEM for each in verdicts.values())
