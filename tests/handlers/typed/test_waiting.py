"""The event loop of coroutines."""

import contextvars
import signal

from tsctl.handlers.typed.waiting import EventLoop

seen = contextvars.ContextVar("seen", default=0)


class Costly:
    """As a tensor on a GPU: its text takes milliseconds, and waits for the GPU."""

    texts = 0

    def __repr__(self) -> str:
        Costly.texts += 1
        return "costly"


async def answer() -> Costly:
    return Costly()


def test_no_text_is_made_of_what_a_coroutine_returns() -> None:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a worker
    loop = EventLoop()
    try:
        assert isinstance(loop.run(answer()), Costly)
        assert [type(each) for each in loop.gather([answer(), answer()])] == [Costly, Costly]
        assert Costly.texts == 0
    finally:
        loop.close()
        signal.signal(signal.SIGINT, usual)


def test_a_coroutine_finds_what_the_one_before_has_set() -> None:
    async def count() -> int:
        seen.set(seen.get() + 1)
        return seen.get()

    loop = EventLoop()
    try:
        assert [loop.run(count()) for _ in range(3)] == [1, 2, 3]
        assert seen.get() == 0
    finally:
        loop.close()
