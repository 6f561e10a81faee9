"""The kinds of values that a model's settings have: their limits, and their text at each border.

Inside the program times are float seconds and sizes are bytes. At a border (model-config.yaml, REST, the command
line) a kind converts the border's units and notations. Every reader raises ValueError with a description of valid
values, for a sentence of the form "batch_size is 0; expected a whole number of at least 1".

Standard library only: the command line imports this package. Plain classes: dataclasses cost the command line
4 ms more (9 and 5 ms of CPU to import the package, median of 25).
"""

from collections.abc import Callable
from typing import Any, ClassVar

from tsctl.daemon.setting_values import FOREVER, parse_boolean, parse_span, span_text

# The largest count, and the largest time in units of a border: more is a mistake, frames hold no number of any length,
# and no timer takes an endless one.
MOST = 10**9


class ValueKind:
    """One kind of value.

    Attributes:
        numeric: whether values are numbers, for which TorchServe's clients send -1 when they mean "not given".
    """

    numeric: ClassVar[bool] = False

    @property
    def what(self) -> str:
        raise NotImplementedError

    @property
    def stored(self) -> Any:
        """Return the type of a value inside the program, as the snapshot's JSON holds it."""
        return str

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a value at the REST border."""
        return {"type": "string"}

    @property
    def metavar(self) -> str:
        """Return the placeholder of a value in the command line's help."""
        return "TEXT"

    @property
    def unit(self) -> str:
        """Return the unit at the border; empty for a value without one, or with the unit in its text."""
        return ""

    def check(self, value: Any) -> None:
        """Raise ValueError if a value of the right type is outside the limits."""

    def read(self, value: Any) -> Any:
        """Read a value of YAML or JSON.

        Raises:
            ValueError: the value is invalid; the message describes valid ones.
        """
        raise NotImplementedError

    def native(self, text: str) -> Any:
        """Convert text to a value for `read`; raise ValueError, with any message, if that is impossible."""
        return text

    def parse(self, text: str) -> Any:
        """Parse the text of a value.

        Raises:
            ValueError: the value is invalid; the message describes valid ones.
        """
        try:
            value = self.native("" if self.numeric and "_" in text else text)  # 1_0 is ten to Python alone
        except ValueError:
            raise ValueError(self.what) from None
        return self.read(value)

    def show(self, value: Any) -> Any:
        """Return a value for JSON and YAML, in the unit of the border."""
        return value


class Integer(ValueKind):
    stored = int
    metavar = "N"
    numeric = True

    def __init__(self, least: int = 0, most: int = MOST) -> None:
        self.least = least
        self.most = most

    @property
    def what(self) -> str:
        if self.most == MOST:
            return "a whole number" if self.least == -MOST else f"a whole number of at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def check(self, value: int) -> None:
        if value < self.least or value > self.most:
            raise ValueError(f"at most {MOST}" if value > MOST else self.what)

    def read(self, value: Any) -> int:
        number = int(value) if type(value) is float and value % 1 == 0 else value
        if type(number) is not int:
            raise ValueError(self.what)
        self.check(number)
        return number

    def native(self, text: str) -> int:
        return int(text)


class Duration(ValueKind):
    """A time, in seconds inside the program.

    Attributes:
        unit: "s" or "ms", at the border.
        positive: whether 0 is refused. A worker's timeout of 0 would not mean "none": every worker would be killed at
            its first batch, or before.
    """

    stored = float
    numeric = True
    unit = "s"

    def __init__(self, unit: str = "s", *, positive: bool = False) -> None:
        self.unit = unit
        self.positive = positive

    @property
    def metavar(self) -> str:
        return "MS" if self.unit == "ms" else "SECONDS"

    @property
    def what(self) -> str:
        if self.positive:
            return "more than 0 seconds; leave it out for the daemon's default"
        return "a number from 0 to 1e9"

    @property
    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": MOST}
        return schema | {"exclusiveMinimum": True} if self.positive else schema

    def check(self, value: float) -> None:
        if self.positive and value == 0:
            raise ValueError(self.what)

    def read(self, value: Any) -> float:
        if type(value) not in (int, float) or not 0 <= value <= MOST:
            raise ValueError(self.what)
        self.check(value)
        return float(value) / 1000 if self.unit == "ms" else float(value)

    def native(self, text: str) -> float:
        return float(text)

    def show(self, value: float) -> float:
        return round(value * 1000, 3) if self.unit == "ms" else value


class TimeSpan(ValueKind):
    """A long time, such as `30s`, `5m`, `2h` or `forever`: text with a unit, or a number of seconds.

    Inside the program a time is float seconds, at most `FOREVER`.
    """

    stored = float
    metavar = "TIME"
    what = "a time, such as 30s, 5m, 2h or forever"

    def check(self, value: float) -> None:
        if not 0 <= value <= FOREVER:
            raise ValueError(self.what)

    def read(self, value: Any) -> float:
        if isinstance(value, str):
            try:
                return parse_span(value)
            except ValueError:
                raise ValueError(self.what) from None
        if type(value) not in (int, float):
            raise ValueError(self.what)
        self.check(value)
        return float(value)

    def show(self, value: float) -> str:
        return span_text(value)


class Boolean(ValueKind):
    """True or false; None for a default that the daemon works out."""

    stored = bool
    what = "true or false"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read(self, value: Any) -> bool:
        if type(value) is not bool:
            raise ValueError(self.what)
        return value

    def native(self, text: str) -> bool:
        return parse_boolean(text)


class Choice(ValueKind):
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @property
    def what(self) -> str:
        return f"one of {', '.join(self.words)}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def check(self, value: str) -> None:
        if value not in self.words:
            raise ValueError(self.what)

    def read(self, value: Any) -> str:
        self.check(value)
        return str(value)


class Document(ValueKind):
    """A value that only YAML can hold; shown unchanged."""

    stored = Any
    what = ""

    def __init__(self, what: str, fits: Callable[[Any], bool]) -> None:
        self.what = what
        self.fits = fits

    def read(self, value: Any) -> Any:
        if not self.fits(value):
            raise ValueError(self.what)
        return value
