"""The texts of NAME.service, how the daemon runs and the rights that it does without, and of NAME.socket."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

from tsctl.service.plan import ServicePlan


def socket_text(plan: ServicePlan) -> str:
    """Return the unit's text; the plan has an address."""
    addresses = "".join(f"ListenStream={address}\n" for address in plan.addresses)
    return f"""\
{MARK}, which replaces this file, and removes it with --remove.
# The same addresses are in {plan.unit}: the daemon refuses a socket that none of its settings names.

[Unit]
Description=Addresses of {plan.unit}

[Socket]
{addresses}\
{_families(plan)}
# Connections that wait while the daemon restarts.
Backlog=1024
{_early(plan)}
[Install]
WantedBy=sockets.target
"""


def _families(plan: ServicePlan) -> str:
    """Return the line on [::]: every address of IPv4, too, as for the daemon, unless 0.0.0.0 has its own socket."""
    ports = {address.rpartition(":")[2] for address in plan.addresses if address.startswith("[::]:")}
    beside = any(address == f"0.0.0.0:{port}" for address in plan.addresses for port in ports)
    if beside:
        return "# 0.0.0.0 and [::] are two addresses.\nBindIPv6Only=ipv6-only"
    return "# [::] is every address, of IPv4, too.\nBindIPv6Only=both"


def _early(plan: ServicePlan) -> str:
    """Return the line for addresses that the network brings up later than the socket."""
    hosts = [ip_address(address.rpartition(":")[0].strip("[]")) for address in plan.addresses]
    if all(host.is_loopback or host.is_unspecified for host in hosts):
        return ""
    return "# Sockets are opened at boot, before the network has its addresses.\nFreeBind=yes\n"


_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]~-]+")


def word(text: str) -> str:
    """Return an argument of a command line. Neither a specifier (`%h`) nor a variable (`$HOME`) is replaced in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    escaped = escaped.replace("\n", "\\n")
    return escaped if _PLAIN.fullmatch(text) else f'"{escaped}"'


def command_line(program: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the value of `ExecStart=`, an argument a line."""
    first = " ".join(word(each) for each in program)
    return " \\\n    ".join((first, *arguments))


def path(text: str) -> str:
    """Return a path for a setting that takes several, such as `ReadWritePaths=`."""
    return word(text).replace("$$", "$")


MARK = "# Written by `tsctl install-service`"
_UPGRADE = 300  # seconds that a new daemon may take to load every model, as `tsctl upgrade` has it by default
_MARGIN = 30  # seconds

# What a user's own systemd can take away, too: views of files are not among that without a user namespace, which not
# every machine allows.
_EVERYWHERE = """\
# Requests run the code of archives, which gets no rights that a model does not need.
NoNewPrivileges=yes
# Netlink: gloo and NCCL read the network interfaces there.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
UMask=0077
# Not MemoryDenyWriteExecute=: torch.compile, Triton and TorchScript write the code that they run.
"""
_NETWORK = "After=network.target\n"
_SYSTEM = """\
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
PrivateTmp=yes
PrivateMounts=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RemoveIPC=yes
# GPUs of NVIDIA, AMD and others, and no device besides /dev/null and its like; PrivateDevices= would hide GPUs.
DevicePolicy=closed
DeviceAllow=char-nvidia* rw
DeviceAllow=char-drm rw
DeviceAllow=char-kfd rw
# Not ProtectControlGroups=: each worker has a cgroup of its own. Not PrivateUsers=: the daemon knows root, who may
# command it, by the number. Not ProcSubset=: /metrics has the machine's memory and processors.
"""


def service_text(plan: ServicePlan) -> str:
    parts = [
        f"""\
{MARK}, which replaces this file, and removes it with --remove.
# Changes belong into a drop-in: `systemctl {"--user " if plan.of_user else ""}edit {plan.unit}`.

[Unit]
Description=Serve PyTorch models with tsctl
{"" if plan.of_user else _NETWORK}{_sockets(plan)}\
# A daemon that cannot start says why, five times in a minute, and is then left alone.
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
# Started means: it listens. Models may still load; a request for one waits.
Type=notify
# After `tsctl upgrade` the new daemon speaks, while the process that systemd knows stays as its stand-in.
NotifyAccess=all
# Flags win over the variables of this file, such as TSCTL_LOG_LEVEL=debug.
EnvironmentFile=-%E/{plan.name}.env
ExecStart={_start(plan)}
# A reload replaces the daemon by a new process, without a failed request.
ExecReload={" ".join(map(word, plan.program))} --socket={plan.control} upgrade --timeout={_UPGRADE}
# Also the time of a reload, which loads every model.
TimeoutStartSec={_UPGRADE + _MARGIN}
# A stop waits for running requests, {plan.grace:g} s; the daemon asks for more if its --grace is longer.
TimeoutStopSec={2 * plan.grace + _MARGIN:g}
# The signal is the daemon's alone: it ends the workers when they have finished.
KillMode=mixed
Restart=on-failure
RestartSec=1
RestartPreventExitStatus=2
# Fed by the event loop: a daemon that answers nothing any more is killed, and its log shows where it stands.
WatchdogSec=30
TimeoutAbortSec=10
# The memory of a daemon is full of models and requests, and not for a file.
LimitCORE=0
""",
        _places(plan),
        """\
# A worker that needs too much memory is killed alone, and the daemon starts another.
OOMPolicy=continue
# The daemon puts each worker into a cgroup, and ends it with all that it started.
Delegate=yes
LimitNOFILE=524288
TasksMax=32768

""",
        _EVERYWHERE,
        "" if plan.of_user else f"{_SYSTEM}{_homes(plan)}",
        f"\n[Install]\nWantedBy={'default.target' if plan.of_user else 'multi-user.target'}\n",
        f"Also={plan.socket_unit}\n" if plan.socket_unit else "",
    ]
    return "".join(parts)


def _sockets(plan: ServicePlan) -> str:
    if plan.socket_unit is None:
        return ""
    return f"""\
# The sockets stay open while this service restarts. `systemctl stop {plan.socket_unit}` stops both.
Requires={plan.socket_unit}
"""


def _start(plan: ServicePlan) -> str:
    state = plan.state and word(f"--state-dir={plan.state}")
    state = state or f"--state-dir={f'%h/.local/state/{plan.name}' if plan.of_user else f'%S/{plan.name}'}"
    places = [f"--socket={plan.control}", state]
    return command_line([*plan.program, "run"], [*places, *map(word, plan.arguments)])


def _places(plan: ServicePlan) -> str:
    """Return the lines about the user and the directories that the daemon may write."""
    lines = [f"RuntimeDirectory={plan.name}", "RuntimeDirectoryMode=0700"]
    if plan.of_user:
        return "\n".join([*lines, ""])
    if plan.run_as is None:
        lines += ["# A user that exists while the service runs, and owns its directories only.", "DynamicUser=yes"]
    else:
        lines += [f"User={plan.run_as}"]
    lines += [f"SupplementaryGroups={group}" for group in plan.groups]
    if plan.state is None:
        lines += [f"StateDirectory={plan.name}", "StateDirectoryMode=0700"]
    lines += [
        "# Libraries keep downloads and compiled code below the home directory.",
        f"CacheDirectory={plan.name}",
        "CacheDirectoryMode=0700",
        f"Environment=HOME=%C/{plan.name}",
    ]
    lines += [f"ReadWritePaths={path(str(each))}" for each in plan.writable]
    return "\n".join([*lines, ""])


def _homes(plan: ServicePlan) -> str:
    if plan.homes:
        return "# Not hidden, because the service reads something in a home directory.\nProtectHome=read-only\n"
    return "ProtectHome=yes\n"
