"""Arguments and options that several verbs share: the model, and the settings of the daemon and of a model."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tsctl.completion import complete_file, complete_model
from tsctl.daemon import paths
from tsctl.daemon.model_settings import ModelSetting, ValueKind
from tsctl.daemon.model_settings.kinds import Boolean, Choice
from tsctl.daemon.setting_values import MIB, parse_boolean, parse_models
from tsctl.daemon.tables import MODEL_SETTINGS, SETTINGS
from tsctl.errors import CliError
from tsctl.terminal.verb import GroupedOption

F = TypeVar("F", bound=Callable[..., Any])

model_argument = click.argument("model", shell_complete=complete_model)
optional_model_argument = click.argument("model", required=False, shell_complete=complete_model)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
sample_argument = click.argument(
    "sample", metavar="[FILE]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
content_type_option = click.option(
    "--content-type",
    metavar="TYPE",
    help="Content type of FILE [default: by its name for JSON and text, else none].",
)

_ADDRESS = "inference_address"
_PARTS = "tsctl.options.address"  # in the `meta` of a context: the parts of the address that were given


def host_option(function: F, **attributes: Any) -> F:
    text = "The name or IP address of predictions, 0.0.0.0 for all of this machine [default: 127.0.0.1]."
    return click.option("--host", cls=GroupedOption, metavar="HOST", help=text, **attributes)(function)


def port_option(function: F, **attributes: Any) -> F:
    text = "The port of predictions [default: 8080]."
    number = click.IntRange(0, 65535)
    return click.option("--port", cls=GroupedOption, type=number, metavar="PORT", help=text, **attributes)(function)


def own_state_dir() -> Path:
    """Return the default state directory.

    Raises:
        CliError: this user has none.
    """
    try:
        return paths.default_state_dir()
    except paths.PathError as error:
        raise CliError(str(error), "name a directory with `--state-dir`") from None


def _take_part(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None:
        ctx.meta.setdefault(_PARTS, {})[param.name] = value


def _take_address(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the address, also where its parts were given, which are taken before.

    Raises:
        click.UsageError: both were given.
    """
    parts = ctx.meta.get(_PARTS, {})
    if parts and value is not None:
        raise click.UsageError("`--host` and `--port` are the parts of `--inference-address`: give either", ctx)
    return address_of(parts.get("host"), parts.get("port")) if parts else value


def address_of(host: str | None, port: int | None) -> str | None:
    """Return the address of `--host` and `--port` as HOST:PORT; None if neither is given."""
    if host is None and port is None:
        return None
    name = "127.0.0.1" if host is None else host
    return f"{f'[{name}]' if ':' in name else name}:{8080 if port is None else port}"


class _MoreThanZero(click.FloatRange):
    """A number above 0; click's own range takes NaN and infinity, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


MORE_THAN_ZERO = _MoreThanZero(min=0, min_open=True)


class ValueType(click.ParamType[str]):
    """Checks a value and passes its text on: the daemon reads it again."""

    def __init__(self, metavar: str, parse: Callable[[str], Any], *, told: str = "{error}") -> None:
        self._parse = parse
        self._told = told
        self.name = metavar.lower()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parsed = self._parse(str(value))
        except ValueError as error:
            self.fail(self._told.format(value=value, error=error), param, ctx)
        return str(parsed) if isinstance(parsed, Path) else str(value)  # the daemon has another working directory

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        match self.name:
            case "dir":
                return [CompletionItem(incomplete, type="dir")]
            case "file" | "path":
                return complete_file(ctx, param, incomplete)
        return []


def kind_type(kind: ValueKind) -> ValueType:
    """Return the type of a model's setting."""
    return ValueType(kind.metavar, kind.parse, told="`{value}`; expected {error}")


def register_options(function: F) -> F:
    """Add an option for each setting of a model that a registration takes."""
    return _model_options(function, lambda row: row.help + _default(row), [row for row in MODEL_SETTINGS if row.flag])


def set_options(function: F) -> F:
    """Add an option for each setting of a model that can be changed while it serves."""
    rows = [row for row in MODEL_SETTINGS if row.flag and row.changes]
    return _model_options(function, lambda row: f"{row.help} Counts {row.changes}.", rows)


def _model_options(function: F, describe: Callable[[ModelSetting], str], rows: Sequence[ModelSetting]) -> F:
    for row in reversed(rows):
        flag, name, value = row.flag, row.name, dict[str, Any]()
        if isinstance(row.kind, Boolean):
            flag, value = f"{flag}/--no-{flag.removeprefix('--')}", {"default": None}
        elif isinstance(row.kind, Choice):
            value = {"type": click.Choice(row.kind.words)}
        else:
            value = {"type": kind_type(row.kind), "metavar": row.kind.metavar}
        option = click.option(flag, name, cls=GroupedOption, group=row.group, help=describe(row), **value)
        function = option(function)
    return function


def _default(row: ModelSetting) -> str:
    """Return the default of a setting for its help, where the help does not have it in words."""
    if "default" in row.help:
        return ""
    if row.daemon:
        usual = next(setting for setting in SETTINGS if setting.name == row.daemon)
        return f" [default: the daemon's {usual.flag}]"
    return "" if row.default is None else f" [default: {_shown(row.kind.show(row.default))}]"


def model_parameters(given: dict[str, Any]) -> dict[str, str | None]:
    """Make the parameters of a request of the options of a model's settings."""
    values = {row.rest: given[row.name] for row in MODEL_SETTINGS if row.name in given}
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}


def setting_options(function: F) -> F:
    """Add an option for each of the daemon's settings; `--socket` also exists on the root command.

    Before that of the inference address, `--host` and `--port` name its parts.
    """
    for setting in reversed(SETTINGS):
        default = "" if setting.default is None else f" [default: {_shown(setting.default)}]"
        flag, value = setting.flag, dict[str, Any]()
        if setting.parse is parse_boolean:
            flag, value = f"{flag}/--no-{setting.name.replace('_', '-')}", {"default": None}
        else:
            value = {"type": ValueType(setting.metavar, setting.parse), "metavar": setting.metavar}
        if setting.parse is parse_models:
            value |= {"multiple": True, "callback": lambda _ctx, _param, values: several(values)}
        if setting.name == _ADDRESS:
            value |= {"callback": _take_address}
        text = setting.help + default
        option = click.option(
            flag, setting.name, cls=GroupedOption, group=setting.group, everyday=setting.everyday, help=text, **value
        )
        function = option(function)
        if setting.name == _ADDRESS:
            for add in (port_option, host_option):
                function = add(function, group=setting.group, is_eager=True, expose_value=False, callback=_take_part)
    return function


def several(values: Sequence[str]) -> str | None:
    """Join the values of a repeated `--models`: the daemon takes a comma-separated list."""
    return ",".join(values) if values else None


def daemon_arguments(socket: Path | None, given: dict[str, Any]) -> list[str]:
    """Return the daemon's arguments for the given options."""
    if given.get("socket") is None and socket is not None:
        given = given | {"socket": str(socket)}
    arguments = []
    for setting in SETTINGS:
        value = given.get(setting.name)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            arguments.append(f"{setting.flag}={text}")
    return arguments


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value and value % MIB == 0:
        return f"{value // MIB}MiB" if value % (1024 * MIB) else f"{value // (1024 * MIB)}GiB"
    return f"{value:g}" if isinstance(value, float) else str(value)
