"""Lines of several logs are one story, in the order of their times, also while they are followed."""

from pathlib import Path

import pytest

from tsctl.daemon import paths
from tsctl.logs.lines import stamp_of
from tsctl.logs.merging import HOLD, Followed, merged
from tsctl.logs.sources import Line, LogSource, model_source, model_sources

T = 1_700_000_000.0


class Logs:
    """The logs of a state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        paths.logs_dir(state).mkdir()
        self.daemon = LogSource(paths.daemon_log(state), "daemon")
        self.access = LogSource(paths.access_log(state), "access")
        self.model = model_source(state, "m", "1.0")

    def find(self) -> list[LogSource]:
        return [self.daemon, self.access, *model_sources(self.state)]

    def say(self, second: float, text: str) -> None:
        append(self.daemon.path, f"{stamp_of(T + second)} INFO    {text}\n")

    def ask(self, second: float, status: int = 200) -> None:
        append(self.access.path, f'{stamp_of(T + second)} p "GET /" {status} 0.1ms i\n')

    def print(self, second: float, text: str, source: LogSource | None = None) -> None:
        append((source or self.model).path, f"{stamp_of(T + second)} 7 stdout {text}\n")


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def words(lines: list[Line]) -> str:
    return " ".join("access" if line.source.log == "access" else line.text.split()[-1] for line in lines)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_nothing_comes_between_a_traceback_and_its_first_line(logs: Logs) -> None:
    logs.say(1, "broke")
    append(logs.daemon.path, "Traceback\n  File\n")
    logs.ask(1)
    logs.print(1, "printed")

    assert words(list(merged(logs.find(), 50, None))) == "broke Traceback File access printed"


def test_a_line_in_json_is_shown_as_text(logs: Logs) -> None:
    stamp = stamp_of(T)
    append(logs.daemon.path, f'{{"time":"{stamp}","level":"error","log":"daemon","text":"a\\nb"}}\n')
    (line,) = merged(logs.find(), 50, None)

    assert line.shown(named=True) == f"{stamp} ERROR   a\nb"


def test_followed_lines_come_after_those_that_were_there(logs: Logs) -> None:
    logs.say(1, "one")
    followed = Followed(lambda: [logs.daemon])
    logs.say(2, "two")

    assert words(list(followed.backlog(50, None))) == "one"
    assert words(followed.added(T + 9, 0.0)) == "two", "at once: there is no other log"
    assert followed.added(T + 9, 0.1) == []
    followed.close()


def test_lines_of_the_access_log_which_come_late_are_waited_for(logs: Logs) -> None:
    logs.ask(0)
    followed = Followed(logs.find)
    list(followed.backlog(0, None))
    logs.say(2, "later")
    assert followed.added(T, 0.0) == []
    logs.ask(1)

    assert followed.added(T, 0.4) == [], "something earlier may still come"
    assert words(followed.added(T, HOLD + 0.4)) == "access later"
    followed.close()


def test_a_model_that_is_registered_meanwhile_is_followed_from_its_first_line(logs: Logs) -> None:
    followed = Followed(logs.find)
    logs.print(1, "loading")

    assert words(followed.added(T, 0.0) + followed.added(T, 10.0)) == "loading"
    logs.print(2, "loaded")
    assert words(followed.added(T, 20.0) + followed.added(T, 30.0)) == "loaded"
    followed.close()


def test_a_rotation_loses_and_repeats_nothing(logs: Logs) -> None:
    logs.say(0, "before")
    followed = Followed(lambda: [logs.daemon])
    logs.say(1, "last")
    logs.daemon.path.rename(logs.daemon.path.with_name("daemon.log.1"))
    logs.say(2, "first")

    assert words(followed.added(T, 0.0)) == "last first"
    assert words(list(merged([logs.daemon], 50, None))) == "before last first"
    followed.close()


def test_a_continued_line_follows_its_first_one_also_when_it_comes_later(logs: Logs) -> None:
    followed = Followed(lambda: [logs.daemon])
    logs.say(1, "broke")
    first = followed.added(T + 50, 0.0)
    append(logs.daemon.path, "Traceback\n")
    (second,) = followed.added(T + 50, 0.2)

    assert second.time == first[0].time and second.continues
    followed.close()
