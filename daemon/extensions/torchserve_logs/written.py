"""A configuration as the keys of a config.properties, for TorchServe's snapshots."""

import math
import re
from typing import Any

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.properties import read_properties
from tsctl.daemon.tables import SETTINGS

_MODELS = ("load_models", "model_snapshot")


def properties_of(config: Config) -> dict[str, str]:
    """Return the keys of the config.properties that was read, without its models, and what was said instead.

    A flag or a variable of the environment wins over the file, as in the configuration itself.

    Raises:
        StartError: the file cannot be read any more.
    """
    written = {} if config.ts_config is None else read_properties(config.ts_config)
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        if setting.key and value is not None and config.origins[setting.name] in ("flag", "environment"):
            written[setting.key] = _text(value)
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


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return str(math.ceil(value))  # TorchServe reads whole numbers
        case tuple():
            return ",".join(value)
        case re.Pattern():
            return str(value.pattern)
    return str(value)
