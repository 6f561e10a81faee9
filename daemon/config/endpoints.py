"""The TCP addresses, the services at each, and the choice between http and https.

    inference address     predictions and health
    management address    TorchServe's management API; off unless given
    metrics address       only /metrics, which the inference address answers, too; off unless given

`--inference-address none` asks for no inference address: predictions then go over the control socket only, and
unless another address is given, the daemon does not listen on TCP at all.

Equal addresses share one socket (SageMaker and KServe expect that). api/guards.py authorises the requests.
An address may begin with `http://` or `https://`; one without a scheme is https as soon as there is a certificate.
"""

import re
import socket
import ssl
from dataclasses import dataclass, replace

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import StartError

_PORT = re.compile(r"[0-9]{1,5}")
# The default ports of TorchServe: (http, https).
INFERENCE_PORTS = (8080, 8443)
MANAGEMENT_PORTS = (8081, 8444)
METRICS_PORTS = (8082, 8445)
NO_ADDRESS = "none"
EVERY_ADDRESS = "::"  # of IPv4 and IPv6


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A TCP address, and its services.

    Attributes:
        flag: the originating setting, for messages.
        port: 0 lets the kernel choose.
        roles: of `inference`, `management` and `metrics`.
    """

    flag: str
    host: str
    port: int
    tls: bool
    roles: frozenset[str]

    @property
    def inference(self) -> bool:
        return "inference" in self.roles

    @property
    def management(self) -> bool:
        return "management" in self.roles

    @property
    def metrics(self) -> bool:
        return "metrics" in self.roles


def choose_endpoints(config: Config) -> list[Endpoint]:
    """Return an endpoint for each address to listen on.

    Raises:
        StartError: an address is invalid, or contradicts the certificate.
    """
    certificate = _has_certificate(config)
    given: list[tuple[str, str, tuple[int, int]]] = []
    if config.inference_address.lower() != NO_ADDRESS:
        given.append(("inference", config.inference_address, INFERENCE_PORTS))
    if config.management_address is not None:
        given.append(("management", config.management_address, MANAGEMENT_PORTS))
    if config.metrics_address is not None and config.metrics:
        given.append(("metrics", config.metrics_address, METRICS_PORTS))
    endpoints: list[Endpoint] = []
    for role, text, ports in given:
        flag = f"--{role}-address"
        host, port, tls = _read(text, ports, certificate, flag)
        # The kernel's choice of a port is another one for metrics, which the inference address answers anyway.
        may_share = port or role != "metrics"
        shared = next((each for each in endpoints if may_share and (each.host, each.port) == (host, port)), None)
        if shared is None:
            endpoints.append(Endpoint(flag, host, port, tls, frozenset({role})))
        elif shared.tls != tls:
            other = getattr(config, shared.flag.removeprefix("--").replace("-", "_"))
            raise StartError(f"`{other}` and `{text}` are one port, which cannot be both http and https")
        else:
            endpoints[endpoints.index(shared)] = replace(shared, roles=shared.roles | {role})
    if certificate and not any(endpoint.tls for endpoint in endpoints):
        why = "every address says http://" if endpoints else "there is no address to use it at"
        raise StartError(f"`--certificate-file` is given, and {why}", "write https://HOST:PORT, or leave it out")
    return endpoints


def _has_certificate(config: Config) -> bool:
    pair = (config.certificate_file, config.private_key_file)
    if (pair[0] is None) != (pair[1] is None):
        there, missing = ("certificate", "private-key") if pair[1] is None else ("private-key", "certificate")
        raise StartError(f"`--{there}-file` is given without `--{missing}-file`", "https needs both, as PEM files")
    return pair[0] is not None


def _read(text: str, ports: tuple[int, int], certificate: bool, flag: str) -> tuple[str, int, bool]:
    """Return an address's host, port and whether to use https."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = ("https" if certificate else "http"), text
    if scheme.lower() not in ("http", "https"):
        raise StartError(f"{flag}: `{text}` is neither http:// nor https://", "write HOST:PORT")
    tls = scheme.lower() == "https"
    if tls and not certificate:
        raise StartError(
            f"{flag}: `{text}` asks for https, and there is no certificate",
            "add `--certificate-file` and `--private-key-file`",
        )
    return *parse_address(rest, ports[tls]), tls


# Reasons of OpenSSL, by the security level of this machine.
_TOO_WEAK = {
    "EE_KEY_TOO_SMALL": "its key is too small",
    "CA_KEY_TOO_SMALL": "a key of its chain is too small",
    "CA_MD_TOO_WEAK": "its signature is made with MD5 or SHA-1",
}


def tls_context(config: Config) -> ssl.SSLContext | None:
    """Load the certificate, if there is one: TLS 1.2 and newer.

    Raises:
        StartError: the certificate or its key cannot be used.
    """
    if config.certificate_file is None or config.private_key_file is None:
        return None
    names = f"`{config.certificate_file}` and `{config.private_key_file}`"

    def no_password() -> str:
        raise StartError(f"the private key `{config.private_key_file}` is encrypted", "use one without a password")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.certificate_file, config.private_key_file, no_password)
    except ssl.SSLError as error:
        if error.reason in _TOO_WEAK:
            raise StartError(
                f"{names}: OpenSSL refuses the certificate as too weak: {_TOO_WEAK[error.reason]}",
                "make a certificate with SHA-256 and a key of at least 2048 bits",
            ) from None
        why = (error.reason or "one of them holds none").lower().replace("_", " ")
        raise StartError(
            f"{names} are no certificate and its key: {why}", "both are PEM; the certificate's chain comes after it"
        ) from None
    except OSError as error:
        raise StartError(f"cannot read {names}: {error.strerror}") from None
    return context


def parse_address(text: str, default_port: int = 8080) -> tuple[str, int]:
    """Parse `HOST:PORT`, `http://HOST:PORT`, `[IPV6]:PORT`, a host, or a port of this machine alone.

    The host `*` is `::`, every address of this machine.

    Raises:
        StartError: the text has none of these forms.
    """
    address = text.removeprefix("http://").rstrip("/")
    host, colon, port = address.rpartition(":")
    if not colon and port.isdigit():  # no host: a resolver would read the number as an IPv4 address
        host = "127.0.0.1"
    elif not colon or address.endswith("]"):
        host, port = address, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host.strip() or not _PORT.fullmatch(port) or int(port) > 65535 or "/" in host:
        raise StartError(f"`{text}` is no address to listen on", "write HOST:PORT, such as 127.0.0.1:8080")
    return EVERY_ADDRESS if host == "*" else host, int(port)


def address_of(listening: socket.socket, scheme: str = "http") -> str:
    """Return a socket's listening address, as a URL."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
