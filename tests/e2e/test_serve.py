"""`tsctl serve`: from a file to an answer, and nothing is left behind."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served, eventually, running
from tests.lab.real import packages

ECHO = "def handle(data, context):\n    return [row.get('body') or row.get('data') for row in data or []]\n"


class Serving:
    """A `tsctl serve` in the background, in a folder with `handler.py`."""

    def __init__(self, served: Served, source: str = ECHO) -> None:
        self.served = served
        self.folder = served.folder / "own"
        self.folder.mkdir()
        self.handler = self.folder / "handler.py"
        self.handler.write_text(source)
        self.log = served.folder / "screen"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start the command, and wait until it shows the `curl` line."""
        with self.log.open("wb") as screen:
            self.process = subprocess.Popen(
                [TSCTL, "serve", *arguments],
                cwd=self.folder,
                env=self.served.environment,
                stdout=screen,
                stderr=screen,
                # A test run in the background ignores Ctrl-C, and its children would, too.
                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            )
        self.wait_for("curl ")

    def wait_for(self, text: str) -> None:
        process = self.process
        assert process is not None
        eventually(lambda: text in self.screen or process.poll() is not None, f"{text} on the screen")
        assert text in self.screen, self.screen

    @property
    def screen(self) -> str:
        return self.log.read_text()

    def ask(self, name: str = "own") -> str:
        """Paste the `curl` command of a model."""
        found = re.search(rf"^curl .*/{name} .*?(?:\\\n.*)?$", self.screen, re.MULTILINE)
        assert found is not None, self.screen
        pasted = f'curl() {{ command curl -s "$@"; }}; {found[0]}'
        done = subprocess.run(["bash", "-c", pasted], cwd="/", capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self, number: int = signal.SIGINT) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def serving(idle: Served) -> Iterator[Serving]:
    idle.environment.pop("TSCTL_MODEL_STORE")
    idle.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = Serving(idle)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.wait()


@pytest.mark.thin
def test_one_command_serves_a_file_and_ctrl_c_leaves_nothing(serving: Serving) -> None:
    serving.start("handler.py")
    pid = serving.served.status["pid"]
    state = Path(serving.served.status["stateDir"])

    assert serving.ask() == "hello"
    assert "model    own 1.0\n" in serving.screen
    assert state.stat().st_mode & 0o777 == 0o700
    assert serving.end() == 0
    assert not running(pid)
    assert not state.exists()
    assert not (serving.served.folder / "state").exists()


def test_a_saved_file_is_served_and_a_broken_one_is_not(serving: Serving) -> None:
    serving.start("handler.py", "--watch")

    serving.handler.write_text(ECHO.replace("return [", "return ['new ' + ").replace(" or row.get('data')", ""))
    serving.wait_for("replaced in ")
    assert serving.ask() == "new hello"
    serving.handler.write_text("def handle(\n")
    serving.wait_for("handler.py, line 1: SyntaxError: '(' was never closed")
    assert serving.ask() == "new hello"
    serving.handler.write_text("import nothing_like_that\n" + ECHO)
    serving.wait_for("handler.py, line 1: ModuleNotFoundError: No module named 'nothing_like_that'")
    assert serving.ask() == "new hello"
    assert serving.screen.count("ModuleNotFoundError") == 1
    serving.handler.write_text(ECHO)
    eventually(lambda: serving.screen.count("replaced in ") == 2, "the mended file is served")
    assert serving.ask() == "hello"
    second = serving.handler.stat().st_mtime_ns // 10**9 * 10**9 + 10**9
    short = ECHO.replace(" or row.get('data')", "")
    for number, letter in enumerate("AB"):  # two saves within a second, of one size: bytecode could not tell them apart
        serving.handler.write_text(short.replace("return [", f"return ['{letter} ' + "))
        os.utime(serving.handler, ns=(second, second + number))
        eventually(lambda: serving.ask() == f"{letter} hello", f"the file with {letter} is served")  # noqa: B023
    assert not serving.handler.with_name("__pycache__").exists()


def test_the_daemon_ends_even_if_the_command_is_killed(serving: Serving) -> None:
    serving.start("handler.py")
    pid = serving.served.status["pid"]

    serving.end(signal.SIGKILL)

    eventually(lambda: not running(pid), "the daemon ends with its parent")


def test_a_running_daemon_keeps_its_own_models_and_forgets_ours(serving: Serving) -> None:
    served = serving.served
    served.start()
    served.tsctl("register", str(served.store / served.pack("echo")))

    serving.start("handler.py", "--name", "ours")
    assert serving.ask("ours") == "hello"
    taken = subprocess.run(
        [TSCTL, "serve", "handler.py", "--name", "echo"], cwd=serving.folder, env=served.environment,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert taken.returncode == 1
    assert "choose a name with `--name`, or `tsctl unregister echo`" in taken.stderr
    assert serving.end() == 0

    assert [model["name"] for model in served.status["models"]] == ["echo"]


def test_a_running_daemon_forgets_ours_even_if_the_command_is_killed(serving: Serving) -> None:
    served = serving.served
    served.start()
    serving.start("handler.py")
    served.tsctl("upgrade")
    served.tsctl("upgrade")  # it is handed on again
    served.note_address()
    assert served.ask("/predictions/own", b"x").status == 200

    serving.end(signal.SIGKILL)

    eventually(lambda: served.status["models"] == [], "the model is unregistered")


TYPED = """import dataclasses
from PIL.Image import Image

@dataclasses.dataclass
class Query:
    text: str
    limit: int
    tags: list[str] = dataclasses.field(default_factory=list)

def picture(images: list[Image]) -> list[dict]:
    return [{"size": image.size} for image in images]

def search(query: Query) -> dict:
    return {"found": [query.text] * query.limit}

def both(text: str, image: Image) -> dict:
    return {"text": text, "size": image.size}
"""


def test_the_command_of_each_kind_of_input_works_as_it_stands(serving: Serving) -> None:
    serving.handler.write_text(TYPED)

    serving.start("handler.py:picture", "handler.py:search", "handler.py:both")

    eventually(lambda: len(re.findall("^curl ", serving.screen, re.MULTILINE)) == 3, "all are shown")
    assert serving.ask("picture") == '{"size":[64,64]}'
    assert serving.ask("search") == '{"found":["hello"]}'
    assert serving.ask("both") == '{"text":"hello","size":[64,64]}'


def test_the_handler_of_the_quick_start_is_served_in_batches(serving: Serving) -> None:
    page = (Path(__file__).parents[2] / "docs" / "quick-start.md").read_text()
    handler = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert handler is not None
    (serving.folder / "filetype.py").write_text(handler[1])
    if packages.missing(["magika"]):
        pytest.skip("`python -m tests.lab real-packages magika` installs its model")
    serving.served.environment |= packages.environment()

    serving.start("filetype.py")

    assert serving.ask("filetype").startswith('{"type":"txt","score":')
    assert "takes    files: list[bytes] -> list[dict]\nbatches  up to 32 requests" in serving.screen
    typed = re.search(r"```bash\n(curl [^`]*)\n```", page)
    port = serving.served.status["inferenceAddress"].rpartition(":")[2]
    assert typed is not None
    assert typed[1].replace(":8080/", f":{port}/") in serving.screen


def test_a_model_served_for_a_while_is_not_in_the_snapshot(serving: Serving) -> None:
    served = serving.served
    served.start()
    serving.start("handler.py")

    served.kill()
    eventually(lambda: serving.process is not None and serving.process.poll() is not None, "the command ends")
    served.start()

    assert served.status["models"] == []
    assert "the daemon has ended" in serving.screen
