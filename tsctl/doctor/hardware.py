"""Checks of processors, memory and GPUs."""

from tsctl.daemon.workers.cores import crowding
from tsctl.doctor.facts import DoctorFacts
from tsctl.doctor.verdict import OK, PROBLEM, WARNING, Verdict
from tsctl.render import bytes_text

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
    left = min(found.available, found.available if found.left is None else found.left)
    text = f"{bytes_text(left)} free of {bytes_text(min(found.total, found.limit or found.total))}"
    if found.limit is not None and found.limit < found.total:
        text += ", the cgroup's limit"
    if left < NO_MEMORY:
        return Verdict(PROBLEM, f"{text}: no worker can start", "end other programs, or raise the limit")
    if left < LITTLE_MEMORY:
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
