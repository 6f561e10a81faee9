"""The daemon's settings, from their table."""

from docs.generate.markdown import code, table
from tsctl.daemon.tables import SETTINGS
from tsctl.options import setting_options


def daemon_settings() -> str:
    """Write a row for each setting: flag, environment, key of config.properties, help with the default."""
    helped = {option.name: option.help or "" for option in setting_options(lambda: None).__click_params__}  # type: ignore[attr-defined]
    rows = [(code(each.flag), code(each.variable), code(each.key), helped[each.name]) for each in SETTINGS]
    return f"""# Settings of the daemon

Each setting is an option of `tsctl start` and `tsctl run`, and an environment variable; many have a key in TorchServe's
`config.properties`, which is read where `--ts-config` names it. A flag wins over the environment, the environment over the
file, the file over the default. `tsctl config` prints each value and where it came from. A yes-or-no setting is also `--no-…`,
and `true` or `false` in the environment.

Sizes are bytes, or like `64MiB` and `1GB`; times are seconds.

{table(("flag", "environment", "config.properties", ""), rows)}
Tokens are in `TSCTL_TOKEN` and `TSCTL_INFERENCE_TOKEN`, if not in files.
"""
