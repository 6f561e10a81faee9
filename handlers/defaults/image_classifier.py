"""Former name of handlers.builtin.image_classifier, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.builtin.image_classifier import *  # noqa: F403

lead(__name__)
