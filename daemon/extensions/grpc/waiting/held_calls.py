"""Calls for models that are about to be registered or loaded wait, as HTTP's do (api/inference/held_requests.py)."""

import asyncio
import math
from collections.abc import Callable

from tsctl.daemon.core.errors import BadRequest, Loading, LoadingFirst, ModelNotFound, RequestExpired, VersionNotFound
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.models.admission import FirstLoads
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import steer
from tsctl.daemon.models.version import ModelVersion


class AwaitedModels:
    """Finds models, and waits for those that are listed and not registered yet, or whose first worker is loading.

    Args:
        most: calls that may wait.
        receiving: the budget for bodies, in which their messages count: any other message is queued as soon as it is
            whole, and no version's bounds concern one that waits for its version.
    """

    def __init__(self, registry: Registry, most: int, receiving: ReceiveBudget) -> None:
        self._registry = registry
        self._receiving = receiving
        self._most = most
        self._waiting: set[asyncio.Future[None]] = set()
        self._loads = FirstLoads(self._look_again)
        registry.waiters.append(self._look_again)

    async def find(self, name: str, version: str | None, head: CallHead, size: Callable[[], int]) -> ModelVersion:
        """Return the version that answers a call, as `steer` chooses it.

        Args:
            version: as the message names it; None if it does not.
            head: the call's.
            size: returns the bytes of the call's message.

        Raises:
            ModelNotAllowed: the caller's key does not allow the model, which may not be there.
            ModelNotFound: no model has this name, or will have it soon.
            VersionNotFound: the model has no such version.
            NoReadyWorker: the model could not be registered at the start.
            BadRequest: the metadata names another version than the message, or would have to wait with an invalid
                deadline.
            RequestExpired: the model's settings let no request wait for longer.
            Loading: too many calls wait already.
            NoRoom: their messages, and the bodies that are being received, have too many bytes.
        """
        until = math.inf
        head.check_model(name)
        while True:
            try:
                return steer(self._registry, name, version, head)
            except (ModelNotFound, VersionNotFound):
                if not self._registry.expects(name):
                    raise
                refusal = Loading(f'Model "{name}" is being registered. Try again later.')
            except LoadingFirst as error:
                refusal = error
                self._loads.listen(error)
                until = min(until, asyncio.get_running_loop().time() + error.most)
            if head.invalid:
                raise BadRequest(head.invalid)
            if len(self._waiting) >= self._most:
                raise refusal
            await self._settled(size(), name, until)

    async def _settled(self, size: int, name: str, until: float) -> None:
        """Wait until the registry, or a version, has changed, while a message of `size` bytes counts. Raise as `find`.

        Args:
            until: on the loop's clock; inf for no limit. A call's own deadline ends it anyhow.
        """
        settled = asyncio.get_running_loop().create_future()
        fits = self._receiving.count_bytes(size)
        self._waiting.add(settled)
        try:
            if not fits:
                raise self._receiving.refuse()
            async with asyncio.timeout_at(None if until == math.inf else until):
                await settled
        except TimeoutError:
            raise RequestExpired(f'The deadline passed while model "{name}" was loading.') from None
        finally:
            self._waiting.discard(settled)
            self._receiving.free(size)

    def _look_again(self) -> None:
        self._loads.let_go()
        for each in self._waiting:
            if not each.done():
                each.set_result(None)
