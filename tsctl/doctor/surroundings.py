"""Checks of the installation, services, limits, addresses, directories, clocks and disks."""

from tsctl.daemon.paths import SOCKET_PATH_LIMIT
from tsctl.doctor.facts import ConfiguredAddress, DoctorFacts, PathAccess, Space
from tsctl.doctor.verdict import OK, PROBLEM, WARNING, Verdict, worst
from tsctl.render import bytes_text

MIB, GIB = 2**20, 2**30
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
        remedy = "install a C compiler, then tsctl again, from the same clone or wheel as before"
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
    return Verdict(OK, text)


def clock(facts: DoctorFacts) -> Verdict:
    """Check that the clocks go forward, and that the time is possible."""
    found = facts.clocks
    if found.steady[1] < found.steady[0]:
        remedy = "boot with another `clocksource=`; report the fault of the virtual machine"
        return Verdict(PROBLEM, "the monotonic clock went back: timeouts are wrong", remedy)
    remedy = "set the clock: `timedatectl set-ntp true`"
    if found.wall[1] < found.installed - LATE or (found.booted is not None and found.wall[1] < found.booted):
        return Verdict(WARNING, "the time of day is in the past: certificates and logs are wrong", remedy)
    drift = abs((found.wall[1] - found.wall[0]) - (found.steady[1] - found.steady[0]))
    if drift > 0.5:
        return Verdict(WARNING, f"the time of day has just been changed by {drift:.1f} s", remedy)
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
