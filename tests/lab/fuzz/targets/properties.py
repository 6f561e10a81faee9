"""TorchServe's config.properties: settings, or a StartError that names the file or the variable."""

import json
import tempfile
from pathlib import Path

import javaproperties

from tests.lab.fuzz.targets import Target
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.properties import KEYS, ConfigFile, read_config_file
from tsctl.daemon.core.errors import InvalidModel, StartError
from tsctl.daemon.models.settings import overrides_of
from tsctl.daemon.tables import SETTINGS

_FOLDER = tempfile.TemporaryDirectory(prefix="tsctl-fuzz-")
_FILE = Path(_FOLDER.name) / "config.properties"
_ENVIRONMENT = {"STORE": "/nowhere", "TS_JOB_QUEUE_SIZE": "7", "TS_TOKEN_EXPIRATION_TIME_MIN": ""}


def check(data: bytes) -> None:
    _FILE.write_bytes(data)
    try:
        file = read_config_file(_FILE, _ENVIRONMENT)
    except StartError as error:
        assert str(_FILE) in str(error) or any(name in str(error) for name in _ENVIRONMENT), error
        return
    assert file.settings.keys() <= set(KEYS.values())
    json.dumps([file.models, file.snapshot])
    for versions in [*file.models.values(), *file.snapshot.values()]:
        for values in versions.values():
            try:
                overrides_of(values)
            except InvalidModel as error:
                assert "`" in str(error), error
    _check_written_again(file)
    try:
        config = resolve({"ts_config": str(_FILE), "state_dir": _FOLDER.name, "socket": "s"}, _ENVIRONMENT)
    except StartError as error:
        assert str(error)
    else:
        assert set(config.origins) == {setting.name for setting in SETTINGS}


def _check_written_again(file: ConfigFile) -> None:
    """Check that properties written as Java writes them are read back the same."""
    names = {name: key for key, name in KEYS.items()}
    told = {names[name]: given.text for name, given in file.settings.items() if given.origin.startswith("file")}
    if any("$$" in text or "load_models" in key for key, text in told.items()):
        return  # a value of the environment that looks like a variable is one, if it is written down
    _FILE.write_text(javaproperties.dumps(told))
    again = read_config_file(_FILE, {})
    assert {name: given.text for name, given in again.settings.items()} == {KEYS[key]: told[key] for key in told}


_MODELS = b'{"m": {"1.0": {"minWorkers": 1, "maxWorkers": 2, "batchSize": 8, "maxBatchDelay": 50, "marName": "m.mar"}}}'
TARGET = Target(
    check,
    [
        b"inference_address=http://127.0.0.1:8080\nmanagement_address=http://127.0.0.1:8081\nload_models=all\n",
        b"default_response_timeout: 60\n# a comment\n! another\njob_queue_size 5\nenable_envvars_config=true\n",
        b"model_store=$$STORE$$\r\nmax_request_size=1\\\n  000\r\n\\u0064ebug = true\n",
        b"models=" + _MODELS + b"\nunregister_model_timeout=5\nallowed_urls=https?://a/.*,file://.*\n",
        b'model_snapshot={"name": "s.cfg", "modelCount": 1, "models": ' + _MODELS + b"}\nload_models=x",
        b"disable_token_authorization=true\nnumber_of_gpu=1\nblacklist_env_vars=.*SECRET.*\ndecode_input_request=false\n",
        b"keystore=a\n",
        b"install_py_dep_per_model=true\ndefault_workers_per_model=2\nlimit_max_image_pixels=false\n\xe9=\xff\n",
    ],
    [*(key.encode() + b"=" for key in KEYS), b"models=", b"model_snapshot=", b"$$STORE$$", b"\\u00"],
)
