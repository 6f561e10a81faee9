"""The example ResNet-152 works as typed, and answers with five classes."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.served import Served, typed

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "resnet"
PAGE = (EXAMPLE / "README.md").read_text()
SERVE = re.search(r"```bash\npython prepare\.py .*?\n(tsctl archive .*?)```", PAGE, re.DOTALL)


@pytest.mark.thin
def test_the_page_shows_the_six_commands() -> None:
    assert SERVE is not None

    words = [line.split() for line in SERVE[1].replace("\\\n", "").splitlines()]
    verbs = [line[1] if line[0] == "tsctl" else line[0] for line in words]

    assert verbs == ["archive", "start", "register", "describe", "curl", "stop"]


def cheap_weights(file: Path) -> list[str]:
    """Write weights that need no computation; return the options for prepare.py that take them.

    Every layer gives zeros but the last, which has the five best classes in its bias.
    """
    import torch
    from torchvision.models import resnet152

    with torch.device("meta"):
        shapes = resnet152().state_dict()
    weights = {name: torch.zeros(tensor.shape, dtype=tensor.dtype) for name, tensor in shapes.items()}
    weights["fc.bias"][:5] = torch.tensor([8.0, 7.9, 7.8, 7.7, 7.6])
    torch.save(weights, file)
    return ["--weights", str(file)]


@pytest.mark.parametrize("weights", [cheap_weights, lambda file: []], ids=["given", "random"])
def test_the_quick_start_works_as_typed(idle: Served, tmp_path: Path, weights: Callable[[Path], list[str]]) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs the Debian program curl")
    assert SERVE is not None
    folder = tmp_path / "resnet"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.pth", "model_store"))
    subprocess.run(
        [sys.executable, "prepare.py", *weights(tmp_path / "weights.pth")], cwd=folder, check=True, capture_output=True
    )

    done = typed(idle, SERVE[1], folder, "TSCTL_MODEL_STORE")  # the commands name it

    assert done.returncode == 0, done.stderr
    assert re.search(r"^model +resnet-152 ", done.stdout, re.MULTILINE)
    assert len(re.findall(r'^  ".+": 0\.\d+,?$', done.stdout, re.MULTILINE)) == 5  # the five best classes
    assert "Stopped the daemon" in done.stderr
