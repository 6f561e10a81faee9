"""Each model-config.yaml of the checkout, read as at a registration."""

from collections.abc import Iterator
from pathlib import Path

from daemon.config.config import resolve
from daemon.core.errors import BadRequest, InvalidModel
from daemon.models.archives.model_yaml import read_yaml, without_effect
from daemon.models.settings import Overrides, merge
from tests.lab.torchserve.checkout import model_configs
from tests.lab.torchserve.purposes import judge_refusal
from tests.lab.torchserve.verdict import Outcome, Row


def judge(root: Path, only: str = "") -> Iterator[Row]:
    """Yield a row for each file whose path contains `only`."""
    for path in model_configs(root):
        name = str(path.relative_to(root))
        if only in name:
            yield judge_file(name, path)


def judge_file(name: str, path: Path) -> Row:
    """Return the row of one file: whether an archive with it could be registered on a machine without GPUs."""
    try:
        document = read_yaml(path.parent, path.name)
        merge(Overrides(), document, resolve({}, {}), gpus=0)
    except (BadRequest, InvalidModel) as error:
        return judge_refusal(name, str(error))
    keys = without_effect(document)
    return Row(name, Outcome.WORKS, f"without effect, with a warning: {', '.join(keys)}" if keys else "")
