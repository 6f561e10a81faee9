"""TAB in real shells: verbs, options, the models of the running daemon, the archives of its store."""

import re
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served, eventually

COMPLETIONS = Path(__file__).parents[2] / "completions"
PROMPT = "ready> "
COMMAS = "Serve a handler or a model from its file, until Ctrl-C."
ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>])")


class Shell:
    """An interactive shell with tsctl's completion loaded."""

    def __init__(self, name: str, served: Served) -> None:
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"needs the Debian program {name}")
        home = served.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        self.folder = home
        environment = served.environment | {
            "TERM": "dumb" if name == "fish" else "xterm",
            "HOME": str(home),
            "PATH": f"{TSCTL.parent}:{served.environment['PATH']}",
            "PS1": PROMPT,
        }
        script = COMPLETIONS / f"tsctl.{name}"
        options, set_up = {
            "bash": (["--norc", "--noprofile", "-i"], f"source {script}"),
            "zsh": (["-f", "-i"], f"autoload -U compinit && compinit -u && source {script}"),
            "fish": (["--no-config", "-i"], f"function fish_prompt; echo -n '{PROMPT}'; end; source {script}"),
        }[name]
        set_up += "; echo loaded'!'"
        if name == "fish":  # as a command of its own: fish may end when it is typed to before it has the terminal
            options += ["--init-command", set_up]
        self._shell = pexpect.spawn(
            program, options, env=environment, cwd=str(home), timeout=PATIENCE, encoding="utf-8", dimensions=(50, 200)
        )
        self._shell.delaybeforesend = None
        self._lines = 0
        if name != "fish":
            self._shell.sendline(set_up)
        self._shell.expect("loaded!")
        self._shell.expect_exact(PROMPT)  # before it, the terminal itself would echo what is typed

    def tab(self, line: str) -> str:
        """Type a line and press TAB; give all that has appeared when the shell takes input again."""
        self._lines += 1
        mark = f"~{self._lines}~"  # another each time: shells draw a line more than once
        self._shell.send(line + "\t" + mark)
        self._shell.expect_exact(mark)
        seen = ESCAPE.sub("", str(self._shell.before))
        self._shell.send("\x15")  # give the line up
        return seen

    def completes(self, line: str, whole: str) -> None:
        """Press TAB until the line is whole: a daemon that answers too late on a busy machine completes nothing."""
        eventually(lambda: whole in self.tab(line), f"TAB makes `{whole}` of `{line}`")

    def close(self) -> None:
        self._shell.close(force=True)


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.thin
def test_tab_completes_in_a_real_shell(shared: Served, shell_name: str) -> None:
    shared.pack("obey", name="another-model")
    shell = Shell(shell_name, shared)

    try:
        assert "tsctl unregister" in shell.tab("tsctl unreg")
        assert "tsctl register --batch-size" in shell.tab("tsctl register --batch-s")
        shell.completes("tsctl describe ec", "tsctl describe echo")
        shell.completes("tsctl describe echo/", "tsctl describe echo/1.0")
        shell.completes("tsctl register another", "tsctl register another-model.mar")
    finally:
        shell.close()


def test_without_a_daemon_tab_offers_the_files_of_this_directory_and_is_silent_about_models(
    idle: Served, shell_name: str
) -> None:
    shell = Shell(shell_name, idle)
    (shell.folder / "local-net.mar").touch()
    (shell.folder / "other-models").mkdir()
    (shell.folder / "other-models" / "inner.mar").touch()

    try:
        assert "tsctl register local-net.mar" in shell.tab("tsctl register local")
        seen = shell.tab("tsctl register other")
        inner = shell.tab("tsctl register other-models/in")
        model = shell.tab("tsctl describe ec")
        verbs = shell.tab("tsctl se")  # serve and set
    finally:
        shell.close()

    assert "tsctl register other-models/" in seen
    assert not seen.endswith(" ")  # the path goes on
    assert "tsctl register other-models/inner.mar" in inner
    assert "tsctl describe ec" in model
    assert not any(word in model for word in ("echo", "error", "daemon", "Traceback"))
    assert COMMAS in verbs or shell_name != "zsh", "a description is shown whole"


def test_fish_shows_a_description_whole(idle: Served) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("needs the Debian program fish")
    commands = f"source {COMPLETIONS / 'tsctl.fish'}; complete -C 'tsctl se'"
    environment = idle.environment | {"HOME": str(idle.folder), "PATH": f"{TSCTL.parent}:{idle.environment['PATH']}"}

    done = subprocess.run([fish, "--no-config", "-c", commands], env=environment, capture_output=True, text=True)

    assert f"serve\t{COMMAS}" in done.stdout.splitlines()
