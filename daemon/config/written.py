"""A configuration as the keys of a config.properties, for TorchServe's snapshots."""

from daemon.config.config import Config
from daemon.config.properties import read_properties

_MODELS = ("load_models", "model_snapshot")


def properties_of(config: Config) -> dict[str, str]:
    """Return the keys of the config.properties that was read, without its models, and what flags said instead.

    Raises:
        StartError: the file cannot be read any more.
    """
    written = {} if config.ts_config is None else read_properties(config.ts_config)
    for key in _MODELS:
        written.pop(key, None)
    if config.model_store is not None:
        written["model_store"] = str(config.model_store)
    scheme = "http" if config.certificate_file is None else "https"
    for key in ("inference_address", "management_address", "metrics_address"):
        address = getattr(config, key)
        written.pop(key, None)
        if address is not None and address.lower() != "none":
            written[key] = address if "://" in address else f"{scheme}://{address}"
    return written
