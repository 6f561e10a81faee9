"""A kind of value for long times: `30s`, `5m`, `2h`, `forever`."""

from typing import Any

from tsctl.daemon.model_settings.kinds import ValueKind
from tsctl.daemon.setting_values import FOREVER, parse_span, span_text


class TimeSpan(ValueKind):
    """A long time: text with a unit, or a number of seconds; float seconds inside the program, at most `FOREVER`."""

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
