"""`tsctl install-service`."""

import os
import re
from pathlib import Path
from typing import Any

import click

from tsctl.options import daemon_arguments, setting_options
from tsctl.streams import echo
from tsctl.torchserve import TorchServeCommand

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


def _checked_name(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    """Return a name of a unit, which is also that of directories.

    Raises:
        click.BadParameter: systemd, or a directory, would not take the name.
    """
    if not _NAME.fullmatch(name):
        raise click.BadParameter(f"`{name}`; expected letters, digits and `-_.`, beginning with a letter or digit")
    return name


@click.command(cls=TorchServeCommand)
@click.option("--user", "of_user", is_flag=True, help="Install for your own systemd, without root.")
@click.option(
    "--name", default="tsctl", callback=_checked_name, metavar="NAME", help="Name of the units [default: tsctl]."
)
@click.option("--run-as", metavar="USER", help="System user of the service [default: one that exists while it runs].")
@click.option("--now", is_flag=True, help="Enable and start the service; with --remove, stop it first.")
@click.option("--print", "dry", is_flag=True, help="Print the units, and write nothing.")
@click.option("--remove", is_flag=True, help="Remove the units.")
@click.option("--force", is_flag=True, help="Replace or remove units that another program wrote.")
@setting_options
@click.pass_context
def command(
    ctx: click.Context, /, of_user: bool, name: str, run_as: str | None, now: bool, dry: bool, remove: bool,
    force: bool, **given: Any,
) -> None:  # fmt: skip
    """Write systemd's units for the daemon: NAME.service and NAME.socket.

    The service has few rights, is watched, and restarts without refusing a connection. It runs this
    `tsctl` with the options given here, which are those of `tsctl run`; TSCTL_… variables belong into
    /etc/NAME.env, or ~/.config/NAME.env with --user. Nothing is started unless --now is given.
    """
    from tsctl.service.files import remove_units, systemctl, unit_folder, units_there, write_units
    from tsctl.service.plan import make_plan
    from tsctl.service.service import service_text, socket_text

    if of_user and run_as:
        raise click.UsageError("`--user` and `--run-as` contradict each other: a service of your own runs as you")
    folder, mine = unit_folder(os.environ, of_user=of_user), ("--user",) if of_user else ()
    if remove:
        files = units_there(folder, name, force=force)
        if now:
            systemctl(*mine, "disable", "--now", *(file.name for file in files))
        remove_units(files)
        _next(now, mine, "daemon-reload", written="Removed", files=files)
        return
    _take_root_socket(ctx, given)
    flags = {setting: _text(value) for setting, value in given.items()}
    plan = make_plan(flags, daemon_arguments(None, given), name=name, of_user=of_user, run_as=run_as)
    texts = {plan.unit: service_text(plan)}
    if plan.socket_unit is not None:
        texts[plan.socket_unit] = socket_text(plan)
    if dry:
        echo("\n".join(f"# {folder / unit}\n{text}" for unit, text in texts.items()), nl=False)
        return
    write_units(folder, texts, force=force)
    control = plan.control.replace("%t", "$XDG_RUNTIME_DIR" if of_user else "/run").replace("%%", "%")
    enable = ("enable", "--now", *([plan.socket_unit] if plan.socket_unit else []), plan.unit)
    _next(now, mine, "daemon-reload", enable, written="Wrote", files=[folder / unit for unit in texts])
    echo(f"Then: export TSCTL_SOCKET={control}", err=True)


def _next(now: bool, mine: tuple[str, ...], *commands: Any, written: str, files: list[Path]) -> None:
    """Run the commands that make systemd see the files, or print them."""
    from tsctl.service.files import systemctl

    echo(f"{written} {' and '.join(f'`{file}`' for file in files)}", err=True)
    words = [(each,) if isinstance(each, str) else each for each in commands]
    if now:
        for each in words:
            systemctl(*mine, *each)
        return
    echo("Next:", err=True)
    for each in words:
        echo(f"  {' '.join(('systemctl', *mine, *each))}")


def _take_root_socket(ctx: click.Context, given: dict[str, Any]) -> None:
    """Take a `--socket` before the verb as one after it; but not TSCTL_SOCKET, which names the daemon of this shell."""
    root = ctx.find_root()
    if given.get("socket") is None and root.get_parameter_source("socket") is click.core.ParameterSource.COMMANDLINE:
        given["socket"] = str(ctx.obj)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value).lower()
