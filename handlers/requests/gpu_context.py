"""Whether an error has broken the process's GPU context: then every later call of CUDA fails, until the process ends.

Such an error may come from any call, also from one of another batch: kernels run asynchronously. So the error's own
code decides only where CUDA documents it; in any other case the GPU is asked.
"""

import re
import sys
from collections.abc import Callable, Iterator

from tsctl.handlers.requests.excerpt import excerpt, message_of
from tsctl.handlers.requests.out_of_memory import is_out_of_memory
from tsctl.handlers.sdk.gpu import wait_for_gpus
from tsctl.handlers.texts.encodable import class_of

# Codes of which the description of `cudaError_t` (CUDA Runtime API, Data types) says "the process must be terminated
# and relaunched". 700 and 710 were seen to do so (H100, driver 580, torch 2.11): each allocation, copy and
# `synchronize` raised again. Of uncorrectable errors of the memory (214) and of NVLink (220) it does not say so.
BREAKING = frozenset({
    226,  # contained: an invalid access over NVLink, or an error of the hardware
    700,  # illegal address
    702,  # launch timeout
    710,  # assert, as of an index out of range
    714,  # hardware stack error
    715,  # illegal instruction
    716,  # misaligned address
    717,  # invalid address space
    718,  # invalid program counter
    719,  # launch failure
    721,  # tensor memory leak
    911,  # external device
})  # fmt: skip
CAPTURING = range(900, 909)  # what a stream's capture into a graph forbids, until it ends: nothing is broken
_FROM_CUDA = re.compile("cuda|cudnn|cublas|nccl|triton", re.IGNORECASE)
_MOST = 100  # exceptions that are followed from one to its cause
LONGEST = 300  # characters of an error's text in a sentence

Touch = Callable[[], BaseException | None]


def touch_gpus() -> BaseException | None:
    """Wait for the GPUs that this process uses, and return the error that this raises; None if there is none."""
    try:
        wait_for_gpus()
    except Exception as error:  # noqa: BLE001 - whatever it is, the GPU cannot be used
        return None if code_of(error) in CAPTURING else error
    return None


def breakage(error: BaseException, touch: Touch = touch_gpus) -> str:
    """Return in words how the GPU context is broken, as this error or one of its causes shows; empty if it is not.

    Args:
        touch: as `touch_gpus`; asked only if the error comes from CUDA, and its code does not decide.
    """
    try:
        shown = list(_chain(error))
        for each in shown:
            if code_of(each) in BREAKING:
                return _in_words(each)
        suspect = any(code_of(each) is not None or _names_cuda(each) for each in shown)
    except Exception:  # noqa: BLE001 - of an exception's class, which may define anything
        return ""
    again = touch() if suspect else None
    return "" if again is None else _in_words(again)


def is_machines(error: BaseException) -> bool:
    """Return whether an error is no request's and no file's: memory does not suffice, or the GPU context is broken."""
    return is_out_of_memory(error) or breakage(error) != ""


def code_of(error: BaseException) -> int | None:
    """Return the driver's code of an error that torch raises for it; None of any other error.

    torch before 2.8 raises a RuntimeError without a code.
    """
    kind = getattr(sys.modules.get("torch"), "AcceleratorError", None)
    if kind is None or not issubclass(type(error), kind):
        return None
    code = getattr(error, "error_code", -1)
    return code if type(code) is int else -1


def _names_cuda(error: BaseException) -> bool:
    text = message_of(error)
    return not is_out_of_memory(error) and _FROM_CUDA.search(f"{class_of(error)} {text}") is not None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and what it was raised from or during: a handler may raise its own in place of CUDA's."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__context__, each.__cause__]


def _in_words(error: BaseException) -> str:
    text = message_of(error).strip().partition("\n")[0].removeprefix("CUDA error: ")
    code = code_of(error)
    known = "" if code is None or code < 0 else f" (CUDA error {code})"
    return f"its GPU context is broken: {excerpt(text, LONGEST) or class_of(error)}{known}"


class GpuContext:
    """The GPU context of this process, as far as errors show its state. Any thread may report one.

    Attributes:
        broken: in words, how the context is broken; empty while that is not known.
        leave: called with these words, once; in a worker it ends the process. By default it does nothing.
    """

    def __init__(self, touch: Touch = touch_gpus) -> None:
        self.broken = ""
        self.leave: Callable[[str], None] = lambda why: None
        self._touch = touch

    def check(self, error: BaseException) -> None:
        """Leave if this error, which a call of the handler raised, shows that the context is broken."""
        if not self.broken:
            self.broken = breakage(error, self._touch)
            if self.broken:
                self.leave(self.broken)
