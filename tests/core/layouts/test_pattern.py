"""The patterns of TorchServe's log4j2.xml, and the simple ones of operators, are understood; others are named."""

import time
from collections.abc import Iterator

import pytest

from daemon.core.layouts.pattern import BARE, TORCHSERVE, Entry, Layout, UnknownConversion

ENTRY = Entry(1_900_000_000.5, "INFO", "W-9000-net_1.0-stdout", "org.MODEL_LOG", "loaded")


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (TORCHSERVE, "2030-03-17T18:46:40,500 [INFO ] W-9000-net_1.0-stdout org.MODEL_LOG - loaded"),
        (BARE, "2030-03-17T18:46:40,500 - loaded"),
        ("%d %level: %msg%n", "2030-03-17 18:46:40,500 INFO: loaded"),
        ("%date{yyyy-MM-dd HH:mm:ss.SSS}{UTC} %message%n", "2030-03-17 17:46:40.500 loaded"),
        ("%d{yyyy-MM-dd'T'HH:mm:ss} %m%n", "2030-03-17T18:46:40 loaded"),
        ("%d{dd-MMM-yyyy} 100%% %m%n", "17-Mar-2030 100% loaded"),
        ("%d{ABSOLUTE}|%d{ISO8601_BASIC}|%m%n", "18:46:40,500|20300317T184640,500|loaded"),
        ("[%6p] [%-6p] %c{1} %m%n", "[  INFO] [INFO  ] MODEL_LOG loaded"),
        ("%thread %logger %m%n", "W-9000-net_1.0-stdout org.MODEL_LOG loaded"),
        ("%n", ""),
    ],
)
def test_an_entry_is_a_line_of_the_pattern(pattern: str, line: str) -> None:
    assert Layout(pattern).line(ENTRY) == line


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("%X{user} %m%n", "%X{user}"),
        ("%d{EEE} %m%n", "%d{EEE}"),
        ("%d{HH}{CET} %m%n", "%d{HH}{CET}"),
        ("%c{2} %m%n", "%c{2}"),
        ("%p{length=1} %m%n", "%p{length=1}"),
        ("%m 5%", "5%"),
        ("%m", "%m"),
        ("%m % %n", " % "),
    ],
)
def test_an_unknown_part_is_named(pattern: str, part: str) -> None:
    with pytest.raises(UnknownConversion) as caught:
        Layout(pattern)

    assert caught.value.part == part
