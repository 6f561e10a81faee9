"""What `make gpu` judges: whether the goal is met."""

import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from tests.lab.gpu import page, tests
from tests.lab.gpu.__main__ import PAGE, main
from tests.lab.gpu.bound import Bound
from tests.lab.gpu.device import stop_on_term
from tests.lab.gpu.parts import Parts
from tests.lab.gpu.rounds import Measured
from tests.lab.gpu.served import Load
from tests.lab.gpu.unpack import unpack
from tests.places import ROOT


def test_without_the_device_nothing_runs_and_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cuda:99"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("rate", "verdict"), [(950.0, "is met."), (500.0, "is missed at batch size 32 (0.50).")])
def test_the_goal_is_judged_by_the_median_of_the_rounds(rate: float, verdict: str) -> None:
    served = [Load(rate, 0, 0.01, 0.02, busy) for busy in (80.0, None, 90.0)]
    measured = Measured(32, [1000.0, 1100.0, 900.0], served)

    made = page.page(
        {"device": "cuda:0", "GPU": "Some Card", "network": "resnet50"},
        [measured],
        None,
        Bound(14, 7542.0, 11500.0, 320000.0),
    )

    assert f"The goal of 0.90 {verdict}" in made
    assert "The bound is 7542 images/s, by decoding (images/s on 14 cores: decoding 7542, the model 11500, " in made
    assert f" | {rate / 7542:.2f} | 85 % | " in made


def test_the_committed_page_says_that_nothing_is_measured_yet_or_names_the_gpu() -> None:
    text = PAGE.read_text()

    assert text == page.NOT_YET or "\n* GPU: " in text
    assert "These are not figures of a GPU" not in text


def test_what_is_left_out_is_there() -> None:
    assert [file for files in tests.LEFT_OUT.values() for file in files if not (ROOT / file).is_file()] == []


def test_a_program_that_is_ended_stops_what_it_has_started() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop_on_term()
    try:
        with pytest.raises(SystemExit, match=f"{128 + signal.SIGTERM}"):  # which leaves blocks as any exception does
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_the_model_in_float32_stays_beside_that_in_bf16() -> None:
    models = Parts(torch.device("cpu"), quick=True).models

    types = {name: {each.dtype for each in model.parameters()} for name, model in models.items()}
    assert types == {"float32": {torch.float32}, "bf16": {torch.bfloat16}}


def test_a_compiled_module_that_a_process_has_mapped_is_replaced_and_not_written_over(tmp_path: Path) -> None:
    wheel, module = tmp_path / "tsctl-0.whl", tmp_path / "tree" / "tsctl" / "some.so"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"before")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tsctl/some.so", b"now")

    with module.open("rb") as mapped:
        unpack(wheel, tmp_path / "tree", tmp_path / "site")

        assert (mapped.read(), module.read_bytes()) == (b"before", b"now")
    assert [each.name for each in (tmp_path / "tree").iterdir()] == ["tsctl"]


# What a machine with a GPU and torch has none of, and `gpu-pack` does not bring either.
LACKS = (
    "hatchling",
    "captum",
    "moto",
    "flask",
    "pexpect",
    "python_multipart",
    "opentelemetry",
    "s3fs",
    "gcsfs",
    "mypy",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "transformers",
    "soundfile",
    "grpc",
    "ray",
    "playwright",
)
BARE = """
import sys
from importlib.machinery import PathFinder

class Lacking(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in sys.argv[1:] else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Lacking
"""
IMPORT = "import tests.conftest, tests.handlers.conftest, tests.lab.gpu.__main__, tests.lab.gpu.parts"
COLLECT = """
import os
import pytest
from tests.lab.gpu.tests import commands

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # on one core pytest starts no others, which would lack nothing
every, _ = (words[words.index("pytest") + 1 :] for words in commands("cpu"))
sys.exit(pytest.main([*every, "--collect-only"]))
"""


@pytest.mark.slow
def test_the_programs_for_a_bare_machine_need_nothing_that_is_missing_there() -> None:
    subprocess.run([sys.executable, "-c", BARE + IMPORT, *LACKS], cwd=ROOT, check=True)


@pytest.mark.slow
@pytest.mark.heavy
def test_each_file_of_tests_is_read_there() -> None:
    done = subprocess.run([sys.executable, "-c", BARE + COLLECT, *LACKS], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
