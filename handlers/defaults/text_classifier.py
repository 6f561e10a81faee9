"""Former name of handlers.builtin.text_classifier, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.builtin.text_classifier import *  # noqa: F403

lead(__name__)
