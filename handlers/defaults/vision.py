"""Former name of handlers.builtin.vision, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.builtin.vision import *  # noqa: F403

lead(__name__)
