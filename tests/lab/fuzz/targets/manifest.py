"""The archive's manifest (marfile.py, archives/manifest.py): a Manifest of strings, or an error that is a sentence."""

import json
import tempfile
from dataclasses import fields
from pathlib import Path

from tests.kit.archives import model_files
from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.http.messages import error_response
from tsctl.daemon.marfile import MANIFEST, NAME, VERSION, Manifest, ManifestError, parse_manifest
from tsctl.daemon.models.archives.manifest import read_manifest

_FOLDER = tempfile.TemporaryDirectory(prefix="tsctl-fuzz-")
_DIRECTORY = Path(_FOLDER.name)
(_DIRECTORY / "MAR-INF").mkdir()
for _name in ("handler.py", "model.py", "weights.pt", "model-config.yaml", "requirements.txt"):
    (_DIRECTORY / _name).touch()


def check(data: bytes) -> None:
    (_DIRECTORY / MANIFEST).write_bytes(data)
    for name, handler, runtime in ((None, None, None), ("m", "base_handler", "python3")):
        try:
            manifest = read_manifest(_DIRECTORY, model_name=name, handler=handler, runtime=runtime)
        except InvalidModel as error:
            assert error_response(error).status == 400
        else:
            assert NAME.fullmatch(manifest.model_name) and VERSION.fullmatch(manifest.model_version)
            json.dumps(manifest.raw).encode()
            _check(manifest)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        _check(parse_manifest(document))
    except ManifestError as error:
        assert str(error)


def _check(manifest: Manifest) -> None:
    """Check that the manifest holds strings, and is the same when read again."""
    for field in fields(manifest):
        value = getattr(manifest, field.name)
        assert field.name == "raw" or value is None or isinstance(value, str), field.name
    assert parse_manifest(json.loads(json.dumps(manifest.raw))) == manifest


_FILES = {"modelFile": "model.py", "serializedFile": "weights.pt", "configFile": "model-config.yaml"}
TARGET = Target(
    check,
    [
        model_files()[MANIFEST],
        model_files(**_FILES, requirementsFile="requirements.txt", extensions={"a": [1]})[MANIFEST],
        b'{"runtime": "python", "model": {"modelName": "m", "handler": "image_classifier"}, "createdOn": ""}',
        b'{"model": {"modelName": "\\ud800", "modelVersion": "1"}}',
        b'{"model": {"modelName": "m", "handler": "a/b.py:f"}, "runtime": "LSP"}',
        b'\xef\xbb\xbf{"model": []}',
    ],
    [f'"{word}"'.encode() for word in (*_FILES, "modelName", "modelVersion", "handler", "runtime", "model", "python3")],
)
