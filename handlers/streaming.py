"""Former name of handlers.sdk.streaming, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.sdk.streaming import *  # noqa: F403

lead(__name__)
