"""The titles above the options of settings in `--help`; a test keeps the tables complete."""

from collections.abc import Callable, Iterable

from tsctl.daemon.extension import Extension
from tsctl.daemon.server.extensions import EXTENSIONS

_CORE_DAEMON: dict[str, tuple[str, ...]] = {
    "Places and models": ("socket", "state_dir", "ts_config", "model_store", "models", "restore"),
    "Addresses": (
        "inference_address", "metrics_address", "metrics", "management_address", "management_without_token",
        "enable_model_api",
        "token_file", "inference_token_file", "allowed_host", "allowed_urls",
        "trusted_proxies",
        "cors_allowed_origin", "cors_allowed_methods", "cors_allowed_headers", "certificate_file",
        "private_key_file",
    ),
    "Limits and timeouts": (
        "grace", "max_request_size", "max_receiving_bytes", "max_sending_bytes", "queue_jobs", "queue_bytes",
        "ready_when_full", "response_timeout", "startup_timeout", "header_timeout", "body_timeout", "keep_alive",
        "archive_bytes", "archive_files",
    ),
    "Workers and handlers": (
        "install_requirements", "default_workers", "gpus", "default_handler", "envelope", "decode_input",
        "limit_image_pixels", "hide_environment",
        "template",
    ),
    "Logs, metrics and traces": (
        "access_log", "log_level", "log_format", "metrics_mode",
        "disable_system_metrics", "metrics_config", "model_metrics_auto_detect",
    ),
}  # fmt: skip
_CORE_MODEL: dict[str, tuple[str, ...]] = {
    "Batching": ("batch_size", "max_delay", "policy"),
    "Workers": (
        "workers",
        "max_workers",
        "startup_timeout",
        "max_memory",
        "cpus",
        "threads",
    ),
    "Queue and timeouts": ("response_timeout", "queue_jobs", "queue_bytes", "queue_timeout", "client_timeout"),
    "Failures and recording": ("retry", "isolate"),
}


def _with_extensions(
    groups: dict[str, tuple[str, ...]], rows_of: Callable[[Extension], Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the groups with the rows of extensions at the end of theirs, or in groups of their own."""
    found = dict(groups)
    for extension in EXTENSIONS:
        rows = set(rows_of(extension))
        for title, names in extension.help_groups:
            if own := [name for name in names if name in rows]:
                found[title] = (*found.get(title, ()), *own)
    return found


DAEMON = _with_extensions(_CORE_DAEMON, lambda extension: (row.name for row in extension.settings))
MODEL = _with_extensions(_CORE_MODEL, lambda extension: (row.name for row in extension.model_settings))


def group_of(name: str, groups: dict[str, tuple[str, ...]]) -> str:
    """Return the title above a setting's option; "Other settings" for one that no group names."""
    return next((title for title, names in groups.items() if name in names), "Other settings")
