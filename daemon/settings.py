"""Every setting of the daemon: default, unit, environment variable, help text.

One table feeds the daemon's arguments, the options of `tsctl start` and `tsctl run`, and
the environment: the setting `inference_address` is `--inference-address` and
`TSCTL_INFERENCE_ADDRESS`; `key` is the name in TorchServe's config.properties, if there is one.
A flag wins over the environment, which wins over that file, which wins over the default.

Standard library only: the command line imports this module.
"""

from tsctl.daemon.setting_values import (
    MIB,
    Setting,
    parse_auto_optimize,
    parse_boolean,
    parse_cluster,
    parse_count,
    parse_envelope,
    parse_header,
    parse_header_name,
    parse_level,
    parse_log_format,
    parse_memory_budget,
    parse_metrics_mode,
    parse_models,
    parse_names,
    parse_number,
    parse_origin,
    parse_path,
    parse_pattern,
    parse_patterns,
    parse_seconds,
    parse_size,
    parse_span,
    parse_timeout,
)


def _sequence_header(part: str, text: str) -> Setting:
    """Return the setting that renames one of TorchServe's three headers of sequences."""
    usual, key = f"ts_request_sequence_{part}", f"ts_header_key_sequence_{part}"
    return Setting(f"sequence_{part}_header", usual, parse_header_name, "NAME", text, key)


CORE_SETTINGS: tuple[Setting, ...] = (
    Setting("socket", None, parse_path, "PATH", "The control socket [default: in $XDG_RUNTIME_DIR or /tmp/tsctl-UID]."),
    Setting(
        "state_dir", None, parse_path, "DIR", "The directory of logs and registrations [default: ~/.local/state/tsctl]."
    ),
    Setting(
        "ts_config", None, parse_path, "FILE", "TorchServe's config.properties.", theirs="TS_CONFIG_FILE", opens="read"
    ),
    Setting("model_store", None, parse_path, "DIR", "The directory of model archives.", "model_store", opens="read"),
    Setting(
        "models",
        None,
        parse_models,
        "MODELS",
        "Models to load at the start: ALL, or comma-separated [NAME=]ARCHIVE.",
        "load_models",
    ),
    Setting("restore", True, parse_boolean, "true|false", "Restore the models that the last run had registered."),
    Setting(
        "inference_address",
        "127.0.0.1:8080",
        str,
        "ADDRESS",
        "The address of the inference API: HOST:PORT, or `none` for the control socket only.",
        "inference_address",
    ),
    Setting(
        "metrics_address",
        None,
        str,
        "ADDRESS",
        "An additional address that serves only /metrics: HOST:PORT.",
        "metrics_address",
    ),
    Setting("metrics", True, parse_boolean, "true|false", "Serve /metrics.", "enable_metrics_api"),
    Setting(
        "management_address",
        None,
        str,
        "ADDRESS",
        "The address of TorchServe's management API: HOST:PORT [default: only the control socket].",
        "management_address",
    ),
    Setting(
        "grpc_address",
        None,
        parse_names,
        "ADDRESSES",
        "Comma-separated addresses of gRPC predictions and health checks, HOST:PORT [default: none].",
    ),
    Setting(
        "grpc_management_address",
        None,
        parse_names,
        "ADDRESSES",
        "Comma-separated addresses of management over gRPC, HOST:PORT; needs a management token [default: none].",
    ),
    Setting(
        "management_without_token",
        False,
        parse_boolean,
        "true|false",
        "Let every client that reaches the management address register code.",
        "disable_token_authorization",
    ),
    Setting(
        "token_file",
        None,
        parse_path,
        "FILE",
        "A 0600 file with the token of the management address [default: TSCTL_TOKEN].",
        opens="read",
    ),
    Setting(
        "inference_token_file",
        None,
        parse_path,
        "FILE",
        "A 0600 file with the token of the inference API [default: TSCTL_INFERENCE_TOKEN].",
        opens="read",
    ),
    Setting(
        "allowed_host",
        None,
        parse_names,
        "NAMES",
        "Additional host names of the management address, and for web pages at a loopback address, comma-separated.",
    ),
    Setting(
        "allowed_urls",
        None,
        parse_patterns,
        "PATTERNS",
        "Comma-separated regular expressions of the URLs that archives may come from [default: none].",
        "allowed_urls",
    ),
    Setting(
        "cors_allowed_origin",
        None,
        parse_origin,
        "ORIGIN",
        "The origin whose web pages may read answers of the inference API; * for any.",
        "cors_allowed_origin",
    ),
    Setting(
        "cors_allowed_methods",
        None,
        parse_header,
        "LIST",
        "The methods these pages may use.",
        "cors_allowed_methods",
    ),
    Setting(
        "cors_allowed_headers",
        None,
        parse_header,
        "LIST",
        "The headers these pages may send.",
        "cors_allowed_headers",
    ),
    Setting(
        "certificate_file",
        None,
        parse_path,
        "FILE",
        "A PEM certificate with its chain, to serve HTTPS.",
        "certificate_file",
        opens="read",
    ),
    Setting(
        "private_key_file",
        None,
        parse_path,
        "FILE",
        "The PEM private key of the certificate.",
        "private_key_file",
        opens="read",
    ),
    Setting(
        "grace",
        30.0,
        parse_seconds,
        "SECONDS",
        "How long a graceful shutdown waits for running requests.",
        "unregister_model_timeout",
    ),
    Setting("max_request_size", 64 * MIB, parse_size, "BYTES", "The largest request body.", "max_request_size"),
    Setting(
        "max_receiving_bytes",
        None,
        parse_size,
        "BYTES",
        "The most bytes of request bodies received at once [default: 512MiB, or twice the largest body].",
        "max_receiving_bytes",
    ),
    Setting(
        "max_sending_bytes",
        512 * MIB,
        parse_size,
        "BYTES",
        "The most bytes of all answers that wait for their clients; one connection may have an eighth.",
    ),
    Setting("queue_jobs", 100, parse_count, "JOBS", "Requests that may wait for one model version.", "job_queue_size"),
    Setting("queue_bytes", 256 * MIB, parse_size, "BYTES", "Bytes that may wait for one model version."),
    Setting(
        "ready_when_full",
        True,
        parse_boolean,
        "true|false",
        "Answer that the daemon is ready also while the queue of a model is full.",
    ),
    Setting(
        "response_timeout",
        120.0,
        parse_timeout,
        "SECONDS",
        "How long a worker may take for a batch.",
        "default_response_timeout",
    ),
    Setting(
        "startup_timeout",
        120.0,
        parse_timeout,
        "SECONDS",
        "How long a worker may take to load its model.",
        "default_startup_timeout",
    ),
    Setting("header_timeout", 10.0, parse_seconds, "SECONDS", "How long a request's headers may take to arrive."),
    Setting("body_timeout", 60.0, parse_seconds, "SECONDS", "How long a request's body may take to arrive."),
    Setting("keep_alive", 75.0, parse_seconds, "SECONDS", "How long an idle connection stays open."),
    Setting("archive_bytes", 16 * 1024 * MIB, parse_size, "BYTES", "The most bytes that one archive may unpack to."),
    Setting("archive_files", 10_000, parse_count, "FILES", "The most files and directories that one archive may hold."),
    Setting(
        "install_requirements",
        False,
        parse_boolean,
        "true|false",
        "Install the requirements.txt of archives with pip.",
        "install_py_dep_per_model",
    ),
    Setting(
        "default_workers",
        None,
        parse_number,
        "WORKERS",
        "Workers of a model if neither the registration nor the archive names a number.",
        "default_workers_per_model",
    ),
    Setting("models_memory", None, parse_memory_budget, "SIZE", "Memory of all models: 16GiB or host=16GiB,gpu=20GiB."),
    Setting(
        "model_keep_alive", 300.0, parse_span, "TIME", "How long an idle model with `loading: on_demand` stays loaded."
    ),
    Setting(
        "default_handler",
        None,
        str,
        "HANDLER",
        "The handler of an archive that names none.",
        "default_service_handler",
    ),
    Setting(
        "envelope",
        None,
        parse_envelope,
        "ENVELOPE",
        "Every model's request envelope: body, json, kserve, kservev2.",
        "service_envelope",
    ),
    Setting(
        "decode_input",
        True,
        parse_boolean,
        "true|false",
        "Decode JSON and text before the handler sees them.",
        "decode_input_request",
    ),
    Setting(
        "limit_image_pixels",
        True,
        parse_boolean,
        "true|false",
        "Refuse images of absurdly many pixels.",
        "limit_max_image_pixels",
    ),
    _sequence_header("id", "The header with the id of a request's sequence."),
    _sequence_header("start", "The header of a request that starts its sequence anew."),
    _sequence_header("end", "The header of a sequence's last request."),
    Setting(
        "hide_environment",
        None,
        parse_pattern,
        "REGEX",
        "Environment variables to hide from workers: a regular expression of names.",
        "blacklist_env_vars",
    ),
    Setting(
        "template", True, parse_boolean, "true|false", "Fork workers from a process that has imported torch already."
    ),
    Setting(
        "auto_optimize",
        "built-in",
        parse_auto_optimize,
        "CHOICE",
        "Models for which the fastest optimizations are found by a trial: built-in (image classifiers and segmenters"
        " that say nothing of `optimize`, after 20 minutes of work; and `optimize: auto`), asked (only the latter) or"
        " never.",
    ),
    Setting(
        "ray_address",
        None,
        parse_cluster,
        "ADDRESS",
        "The Ray cluster of models with `engine: ray`: HOST:PORT of its head, or `auto`; needs tsctl[ray].",
    ),
    Setting("access_log", True, parse_boolean, "true|false", "Log a line for each request."),
    Setting("log_level", "info", parse_level, "LEVEL", "The daemon's log level: debug, info, warning or error."),
    Setting(
        "log_format", "text", parse_log_format, "FORMAT", "The lines of all logs: text, or json (an object a line)."
    ),
    Setting(
        "metrics_mode",
        None,
        parse_metrics_mode,
        "MODE",
        "Where TorchServe's metrics and those of handlers go: prometheus (/metrics), log (ts_metrics.log,"
        " model_metrics.log), or legacy (the three ts_… on /metrics, the others to the files) [default: /metrics, and"
        " the files if a place is named for them].",
        "metrics_mode",
    ),
    Setting(
        "disable_system_metrics",
        False,
        parse_boolean,
        "true|false",
        "Leave out the metrics of the machine: processor, memory, disk, GPUs.",
        "disable_system_metrics",
    ),
    Setting(
        "metrics_config",
        None,
        parse_path,
        "FILE",
        "TorchServe's metrics.yaml: the metrics of handlers, and those of TorchServe's own that are shown.",
        "metrics_config",
        opens="read",
    ),
    Setting(
        "model_metrics_auto_detect",
        None,
        parse_boolean,
        "true|false",
        "Show metrics of handlers that are not declared [default: on without --metrics-config].",
        "model_metrics_auto_detect",
    ),
)
