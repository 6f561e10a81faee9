"""Former name of handlers.builtin.object_detector, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.builtin.object_detector import *  # noqa: F403

lead(__name__)
