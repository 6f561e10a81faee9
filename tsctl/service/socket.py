"""The text of NAME.socket: the addresses that stay open while the daemon restarts."""

from ipaddress import ip_address

from tsctl.service.plan import ServicePlan
from tsctl.service.service import MARK


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
