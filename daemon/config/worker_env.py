"""The environment variables of workers: the daemon's, without the hidden ones, and with the configured ones."""

from collections.abc import Mapping

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.tables import SETTINGS

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
    chosen = [row for row in SETTINGS if row.worker and config.origins[row.name] != "default"]
    # Values set by hand stay: several daemons may share compiled models.
    kept.setdefault("TORCHINDUCTOR_CACHE_DIR", str(paths.compiled_dir(config.state_dir)))
    kept = {**config.worker_variables, **kept}
    if not any(name in kept for name in _SPINS_CHOSEN):
        kept |= _SPINS
    return kept | {row.worker: _text(getattr(config, row.name)) for row in chosen}


def _text(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value
