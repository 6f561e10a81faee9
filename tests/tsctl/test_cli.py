"""The root command: its verbs, its help and its exit codes."""

import signal
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import tsctl.commands
from tests.tsctl.conftest import Invoke
from tsctl.cli import EVERYDAY, VERBS, all_verbs
from tsctl.extension import extensions, module_of, names


def test_the_table_of_verbs_is_the_folder_of_commands() -> None:
    files = {path.stem for path in Path(tsctl.commands.__path__[0]).glob("*.py")} - {"__init__"}

    assert {verb.replace("-", "_") for verb in VERBS} == files


def test_each_verb_of_an_extension_has_its_file_and_none_hides_one_of_the_core() -> None:
    for name, each in zip(names(), extensions(), strict=True):
        for verb in each.verbs:
            assert module_of(verb) == f"tsctl.extensions.{name}.{verb.replace('-', '_')}"
            assert find_spec(module_of(verb)) is not None
        assert each.examples.keys() == each.verbs.keys()
        assert not each.verbs.keys() & VERBS.keys()


@pytest.mark.parametrize("verb", ["version", "help", "completion bash"])
def test_a_full_disk_behind_stdout_is_an_error_in_one_line(verb: str) -> None:
    program = f"from tsctl.cli import main; main({verb.split()}, prog_name='tsctl')"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True)

    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


def test_ctrl_c_while_the_command_line_is_imported_ends_it_without_a_word() -> None:
    program = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
from tsctl.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_is_set_before_any_module_of_python_is_imported() -> None:
    program = f"import sys; sys.path[:0] = {sys.path!r}; import tsctl.__main__; print('enum' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_a_verb_of_the_core_imports_no_extension() -> None:
    program = (
        "import sys; from tsctl.cli import main; main(['logs', '--help'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert [name for name in done.stdout.split() if name.startswith("tsctl.extensions.")] == []


@pytest.mark.parametrize("line", ["--help all", "-h all", "help all"])
def test_the_whole_help_lists_every_verb_with_its_line(invoke: Invoke, line: str) -> None:
    result = invoke(*line.split())

    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [f"{verb} {text}" for verb, (_, text) in all_verbs().items() if f"{verb} {text}" not in lines] == []


@pytest.mark.parametrize("line", ["--help", "-h", "help", "--help nonsense"])
def test_help_lists_twelve_everyday_verbs_serve_first_and_the_way_to_the_others(invoke: Invoke, line: str) -> None:
    result = invoke(*line.split())

    _, _, listed = result.stdout.partition("\nEvery day:\n")
    verbs = [found.split()[0] for found in listed.splitlines() if found.startswith("  ")]
    assert result.exit_code == 0
    assert verbs == [verb for verb in EVERYDAY if verb in all_verbs()] and len(EVERYDAY) == 12
    assert verbs[0] == "serve" and f"{len(all_verbs()) - len(verbs)} more: `tsctl help all`" in listed


def test_without_a_verb_it_shows_its_help_and_that_was_wrong_usage(invoke: Invoke) -> None:
    result = invoke()

    assert result.exit_code == 2
    assert "Usage: tsctl" in result.output


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        ("regster", " Did you mean `register`?"),
        ("start2", " Did you mean `start`?"),
        ("rm", " Did you mean `unregister`?"),
        ("zzz", ""),
    ],
)
def test_an_unknown_verb_is_wrong_usage_and_may_bring_a_suggestion(invoke: Invoke, typed: str, suggestion: str) -> None:
    result = invoke(typed)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: No such command `{typed}`.{suggestion}"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("ls --nothing", id="an option that does not exist"),
        pytest.param("describe a/b/c", id="a model with two slashes"),
        pytest.param("describe a/", id="a model without a version after the slash"),
        pytest.param("default resnet", id="a default without a version"),
        pytest.param("--nothing ls", id="an option of the root that does not exist"),
    ],
)
def test_wrong_usage_exits_with_2(invoke: Invoke, line: str) -> None:
    result = invoke(*line.split())

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error: " in result.stderr


@pytest.mark.parametrize(
    ("line", "why"),
    [("scale m two", "'two' is not a whole number."), ("upgrade --timeout soon", "'soon' is not a number.")],
)
def test_a_text_that_is_no_number_is_refused_in_words(invoke: Invoke, line: str, why: str) -> None:
    assert invoke(*line.split()).stderr.endswith(f"{why}\n")


@pytest.mark.parametrize(
    "line",
    [
        "status",
        "stop",
        "ls",
        "ls --json",
        "config",
        "config resnet",
        "describe resnet",
        "register resnet.mar",
        "unregister resnet",
        "scale resnet 2",
        "restart resnet",
        "default resnet/1.0",
        "predict resnet -",
    ],
)
def test_without_a_daemon_it_exits_with_3_and_a_hint(invoke: Invoke, tmp_path: Path, line: str) -> None:
    result = invoke(*line.split())

    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"error: no daemon at `{tmp_path}/run/tsctl/control.sock`",
        "hint: start one with `tsctl start`",
    ]


@pytest.mark.parametrize(
    "line",
    ["--socket {} ls", "ls --socket {}", "describe --socket={} resnet", "--socket nowhere.sock status --socket {}"],
)
def test_the_socket_may_be_given_before_and_after_the_verb(invoke: Invoke, tmp_path: Path, line: str) -> None:
    result = invoke(*line.format(tmp_path / "other.sock").split())

    assert result.exit_code == 3
    assert f"no daemon at `{tmp_path}/other.sock`" in result.stderr


@pytest.mark.parametrize(
    "line", ["ls", "describe m", "predict m --data x", "check handler.py", "register m.mar", "stop"]
)
def test_ctrl_c_exits_with_130(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("handler.py").write_text("def handle(data, context): ...")
    monkeypatch.setattr("socket.socket.connect", interrupted)  # what talks to the daemon, and
    monkeypatch.setattr("subprocess.Popen.__init__", interrupted)  # what runs a process of its own

    result = invoke(*line.split())

    assert result.exit_code == 130
    assert "interrupted" in result.stderr


def test_the_socket_may_come_from_the_environment(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSCTL_SOCKET", str(tmp_path / "other.sock"))

    result = invoke("ls")

    assert f"no daemon at `{tmp_path}/other.sock`" in result.stderr


@pytest.mark.parametrize("line", ["--version", "-V", "version"])
def test_version(invoke: Invoke, line: str) -> None:
    result = invoke(line)

    assert result.exit_code == 0
    assert result.stdout == f"tsctl {version('tsctl')}\n"


def test_help_imports_nothing_heavy() -> None:
    script = "import sys; from tsctl.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    imported = set(shown.splitlines()[-1].split())
    assert "click" in imported
    assert imported.isdisjoint({"torch", "asyncio", "uvloop", "rich", "http.client", "importlib.metadata", "handlers"})
