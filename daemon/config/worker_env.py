"""The environment variables of workers: the daemon's, without the hidden ones, and with the configured ones."""

from collections.abc import Mapping

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.server.extensions import EXTENSIONS

# setting → the variable that TorchServe's workers read, and ours
_VARIABLES = {
    "envelope": "TS_SERVICE_ENVELOPE",
    "decode_input": "TS_DECODE_INPUT_REQUEST",
    "limit_image_pixels": "TS_LIMIT_MAX_IMAGE_PIXELS",
    "sequence_id_header": "TS_REQUEST_SEQUENCE_ID",
    "sequence_start_header": "TS_REQUEST_SEQUENCE_START",
    "sequence_end_header": "TS_REQUEST_SEQUENCE_END",
}
# How often a thread of libgomp looks for work before it sleeps. libgomp's own 300 000 are 15 ms of a core that another
# model waits for: two busy models answered 278 requests a second with this value, 95 without; one alone 272 and 286,
# medians of nine turns between 220 and 325 (measured at d82013d7).
_SPINS = {"GOMP_SPINCOUNT": "3000"}
# A service manager's messages are the daemon's to send: a library that finds NOTIFY_SOCKET would speak for the service.
_SERVICE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_SPINS_CHOSEN = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def model_environment(environment: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return the environment of every worker.

    A setting at its default leaves the inherited variable unchanged.
    """
    hidden = config.hide_environment
    kept = {
        name: value
        for name, value in environment.items()
        if name not in _SERVICE_MANAGER and (hidden is None or not hidden.fullmatch(name))
    }
    chosen = {variable: name for name, variable in _VARIABLES.items() if config.origins[name] != "default"}
    # Values set by hand stay: several daemons may share compiled models.
    kept.setdefault("TORCHINDUCTOR_CACHE_DIR", str(paths.compiled_dir(config.state_dir)))
    for extension in EXTENSIONS:
        kept = {**extension.environment(config), **kept}
    if not any(name in kept for name in _SPINS_CHOSEN):
        kept |= _SPINS
    return kept | {variable: _text(getattr(config, name)) for variable, name in chosen.items()}


def _text(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value
