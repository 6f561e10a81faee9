"""The upgrade of a daemon, which starts another one with the same sockets and models."""

from collections.abc import Callable, Sequence

from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.lifecycle.boot import Boot
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.upgrade.messages import Expected
from tsctl.daemon.lifecycle.upgrade.old import Door, Upgrade
from tsctl.daemon.lifecycle.upgrade.successor import Launch, NewDaemon, start
from tsctl.daemon.server.models import Models


def upgrade_of(
    models: Models, launch: Launch, boot: Boot, place: Instance, loaded: Callable[[], bool],
    doors: Callable[[], Sequence[Door]],
) -> Upgrade:  # fmt: skip
    """Return the upgrade; nothing is started.

    Args:
        loaded: returns whether what is served from the start is loaded, or has failed.
        doors: as of `Upgrade`.
    """

    def start_new(python: str | None, expected: list[Expected]) -> NewDaemon:
        stand_in = boot.has_stand_in or launch.supervised
        new = start(launch, python, place.inheritance(expected, stand_in=stand_in))
        models.engine.spare(new.pid)
        return new

    return Upgrade(models.registry, models.registrar, start_new, loaded, place.claim, doors, tsctl_version())
