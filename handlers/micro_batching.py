"""Former name of handlers.torchserve.micro_batching, for processes of earlier versions: see moved.py."""

from typing import TYPE_CHECKING

from handlers.moved import lead

if TYPE_CHECKING:
    from handlers.torchserve.micro_batching import *  # noqa: F403

lead(__name__)
