"""An empty value is none, or is refused by name: never everything."""

from pathlib import Path
from typing import Any

import pytest

from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.endpoints import choose_endpoints, parse_address
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.setting_values import Setting, parse_names, parse_patterns
from tsctl.daemon.tables import SETTINGS

# Settings for which an empty text is none. A setting that is not here refuses the text.
NONE: dict[str, Any] = {
    "models": (),  # no model is loaded, and none of the last run that was loaded from a list is restored
    "cors_allowed_methods": "",  # no header is sent: a browser allows the simple methods
    "cors_allowed_headers": "",
    "default_handler": "",  # an archive that names no handler is refused
}
LISTS = [setting for setting in SETTINGS if setting.parse in (parse_names, parse_patterns)]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: str(setting.name))
def test_an_empty_value_of_a_setting_is_none_or_refused(setting: Setting, tmp_path: Path) -> None:
    refusal = ""
    try:
        config = resolve({"state_dir": str(tmp_path), "socket": "s"} | {setting.name: ""}, {})
        choose_endpoints(config)
    except StartError as error:
        refusal = str(error)

    if refusal:
        assert setting.flag in refusal or "`` is no address" in refusal
    elif setting.name == "hide_environment":  # names are matched as a whole: no variable is hidden
        assert not getattr(config, setting.name).fullmatch("PATH")
    else:
        assert getattr(config, setting.name) == NONE[setting.name]


@pytest.mark.parametrize("setting", LISTS, ids=lambda setting: str(setting.name))
def test_commas_alone_are_an_empty_list_too(setting: Setting) -> None:
    assert setting.default is None
    with pytest.raises(ValueError, match="contains no name"):
        setting.parse(" , ,")


@pytest.mark.parametrize("address", ["", " ", ":8080", " :8080", "http://:8080"])
def test_an_address_without_a_host_is_not_every_address(address: str) -> None:
    with pytest.raises(StartError, match="is no address to listen on"):
        parse_address(address)
