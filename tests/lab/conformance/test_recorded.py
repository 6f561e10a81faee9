"""The recording is complete, and reveals nothing about the machine of its origin."""

import re
import socket
from pathlib import Path

import pytest

from tests.lab.conformance.case import CASES, GROUPS, NAMES
from tests.lab.conformance.compare import PURPOSES
from tests.lab.conformance.scrub import TIME, UUID

FILES = sorted(CASES.glob("*.json"))
PRIVATE = {
    "a path": re.compile(r"/(home|root|tmp|usr|opt|var|work|Users|private)/"),
    "a request id": UUID,
    "a time": TIME,
    "a process id": re.compile(r'pid\\?"\s*:\s*[1-9]'),
    "memory": re.compile(r'memoryUsage\\?"\s*:\s*[1-9]'),
    "an address with a port": re.compile(r"(localhost|\d+\.\d+\.\d+\.\d+):\d+"),
    "this host's name": re.compile(re.escape(socket.gethostname())),
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
@pytest.mark.parametrize("what", PRIVATE)
def test_a_recording_holds_nothing_of_one_run(file: Path, what: str) -> None:
    text = file.read_text()

    assert PRIVATE[what].findall(text) == []


def test_every_file_is_a_group_and_every_step_is_recorded() -> None:
    assert {file.stem for file in FILES} == set(NAMES)
    assert all(step.answer for group in GROUPS.values() for case in group.cases.values() for step in case.steps)


def test_a_purpose_for_named_cases_names_cases() -> None:
    assert {name for purpose in PURPOSES for name in purpose.cases} <= {
        name for each in GROUPS.values() for name in each.cases
    }
