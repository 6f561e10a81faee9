"""The archive's model-config.yaml (models/settings.py): settings within limits, or a short named error."""

import tempfile
from pathlib import Path

import yaml

from tests.lab.fuzz.targets import Target
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.http.messages import error_response
from tsctl.daemon.model_settings import MOST, MOST_WORKERS, POLICIES
from tsctl.daemon.models.archives.manifest import check_served, read_yaml, without_effect
from tsctl.daemon.models.settings import ModelSettings, Overrides, merge
from tsctl.daemon.tables import MODEL_SETTINGS

_FOLDER = tempfile.TemporaryDirectory(prefix="tsctl-fuzz-")
_DIRECTORY = Path(_FOLDER.name)
_CONFIG = resolve({"state_dir": _FOLDER.name, "socket": "s"}, {})
_LONGEST = 4096  # characters of a sentence


def check(data: bytes) -> None:
    (_DIRECTORY / "model-config.yaml").write_bytes(data)
    try:
        document = read_yaml(_DIRECTORY, "model-config.yaml")
        check_served(document, "model-config.yaml")
        without_effect(document)
        settings = merge(Overrides(), document, _CONFIG, gpus=2)
    except (InvalidModel, BadRequest) as error:
        assert len(str(error)) < _LONGEST + 2 * len(data), "a sentence is larger than what it is about"
        assert error_response(error).status == 400
        return
    _check_limits(settings)
    known = {key: value for key, value in document.items() if isinstance(key, str) and _plain(value)}
    (_DIRECTORY / "model-config.yaml").write_text(yaml.safe_dump(known))
    assert merge(Overrides(), read_yaml(_DIRECTORY, "model-config.yaml"), _CONFIG, gpus=2) == settings


def _check_limits(settings: ModelSettings) -> None:
    assert 1 <= settings.batch_size <= MOST and 1 <= settings.queue_jobs <= MOST and settings.policy in POLICIES
    assert 0 <= settings.workers <= settings.max_workers <= MOST_WORKERS
    times = (settings.max_delay, settings.response_timeout, settings.startup_timeout, settings.queue_timeout)
    assert all(0 <= seconds <= 1e9 for seconds in (*times, settings.client_timeout))
    assert set(settings.devices) <= {0, 1}


def _plain(value: object) -> bool:
    """Whether YAML writes it as it reads it: not a text with signs of its own."""
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(map(_plain, (*value, *value.values())))
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and value.isprintable())


_KEYS = (*(row.yaml for row in MODEL_SETTINGS if row.yaml), "sequenceBatching")
TARGET = Target(
    check,
    [
        b"minWorkers: 1\nmaxWorkers: 2\nbatchSize: 8\nmaxBatchDelay: 100\nresponseTimeout: 120\n",
        b"batching: greedy\nretry: true\nisolate: false\nrecordInput: true\njobQueueSize: 10\n",
        b"deviceType: gpu\ndeviceIds: [0, 1]\noptimize: [bf16, compile]\nclientTimeoutInMills: 5.5\n",
        b"optimize: bf16,compile\nqueueTimeout: 1e3\nstartupTimeout: .inf\n",
        b"a: &a [x, x]\nb: &b [*a, *a]\nbatchSize: *b\n",
        b"handler:\n  profile: true\n  ? [1, 2]\n  : !!set {a, b}\ndate: 2024-01-31\n",
        b"- not a mapping\n",
        b"maxBatchDelay: -1\n",
        b"minWorkers: 2000\n",
        b"a: &a {batchSize: 2}\nb: &b {<<: *a, retry: true}\n<<: [*a, *b]\n",
        b"sequenceBatching: true\n",
        b"inputs: [{name: a, datatype: INT32, shape: [-1, 16], optional: true}]\nplatform: x\n",
        b"outputs:\n- {name: o, datatype: BYTES, shape: []}\n- {name: o, datatype: FP8, shape: 1}\n",
        b'%YAML 1.1\n---\n"batchSize": 0x10\n...\n',
    ],
    [*(key.encode() + b": " for key in _KEYS), b"&a", b"*a", b"!!timestamp ", b"!!int ", b"<<: "],
)
