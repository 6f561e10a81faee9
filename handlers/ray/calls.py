"""Calls of one actor, with Ray's errors translated."""

import contextlib
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError

from tsctl.handlers.ray.errors import ActorLost, ActorSilent, MethodFailed

MOST_DETAIL = 300  # characters of a reason that Ray gives
NOT_INSTALLED = "failed to import"  # in Ray's message about an actor whose module a node does not have


class RayActor:
    """One actor, by Ray's handle."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method; return its result.

        Raises:
            MethodFailed: the method raised.
            ActorSilent: the actor does not answer.
            ActorLost: the actor has ended.
        """
        try:
            return await getattr(self._handle, method).remote(*arguments)
        except RayTaskError as error:
            raise MethodFailed(first_line(error.cause or error)) from error
        except ActorUnavailableError as error:
            raise ActorSilent("does not answer") from error
        except ActorDiedError as error:
            if NOT_INSTALLED in str(error):
                raise MethodFailed(f"tsctl is not installed there: {detail(error)}") from error
            raise ActorLost(f"died: {detail(error)}") from error
        except RayError as error:
            raise ActorLost(f"was lost: {first_line(error)}") from error

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method, and pass over its result."""
        getattr(self._handle, method).remote(*arguments)

    def kill(self) -> None:
        """End the actor now. Waits for the head, which may be gone: run it in a thread."""
        with contextlib.suppress(Exception):  # it has ended, or the head is gone
            ray.kill(self._handle)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def detail(error: BaseException) -> str:
    """Return Ray's reason: behind the facts about the actor, each in a line of its own, and before its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line and not line.startswith("\t")]
    return " ".join(lines[1:] or lines).partition(" Some common causes")[0][:MOST_DETAIL]
