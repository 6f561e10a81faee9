"""Kinds of values that name parts of the machine and of the program: sizes, processors, processes."""

import re
from typing import Any

from tsctl.daemon.model_settings.kinds import Choice, ValueKind
from tsctl.daemon.setting_values import parse_size, size_text

_LARGEST = 2**63 - 1  # bytes: the largest integer in the snapshot and in messages to a worker
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


class ParallelType(Choice):
    """One of a few words, in any case; an empty text or `none` for none."""

    def check(self, value: str) -> None:
        if value:
            super().check(value)

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(self.what)
        word = value.strip().lower()
        return "" if word == "none" else super().read(word)


class Size(ValueKind):
    """A number of bytes, more than 0: `4GiB`, or a whole number."""

    stored = int
    metavar = "SIZE"
    what = "a size, such as 4GiB"

    def check(self, value: int) -> None:
        if not 0 < value <= _LARGEST:
            raise ValueError(self.what)

    def read(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.parse(value)
        if type(value) is not int:
            raise ValueError(self.what)
        self.check(value)
        return value

    def native(self, text: str) -> int:
        return parse_size(text)

    def show(self, value: int | None) -> str | None:
        return None if value is None else size_text(value)


class Cpus(ValueKind):
    """Processors by number, as taskset(1) takes them: `0-3,8`, one number, or a list of numbers."""

    stored = tuple[int, ...]
    metavar = "LIST"
    what = "processors by number, such as 0-3 or 0,2"

    def read(self, value: Any) -> tuple[int, ...]:
        if type(value) is int:
            value = str(value)
        elif isinstance(value, list) and value and all(type(each) is int for each in value):
            value = ",".join(map(str, value))
        found: set[int] = set()
        for part in value.split(",") if isinstance(value, str) else [""]:
            match = _RANGE.fullmatch(part.strip())
            if match is None or int(match[1]) > int(match[2] or match[1]):
                raise ValueError(self.what)
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        return tuple(sorted(found))

    def show(self, value: tuple[int, ...]) -> str | None:
        return cpus_text(value) or None


def cpus_text(cpus: tuple[int, ...]) -> str:
    """Return processor numbers, sorted, as the text that `Cpus` reads: `0-3,8`."""
    parts: list[str] = []
    first = last = -2
    for cpu in (*cpus, -2):
        if cpu == last + 1:
            last = cpu
            continue
        if first >= 0:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = cpu
    return ",".join(parts)
