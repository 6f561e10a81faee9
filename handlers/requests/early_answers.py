"""Answers that begin their way to main memory right behind the model, from the thread that runs it.

    inference     kernels of batch 1 ▸ its answers ▸ kernels of batch 2 ▸ …
    copies                                         ▸ answers of batch 1
    postprocess                                                        ▸ names of classes, JSON

What `postprocess` started itself would run behind the kernels of the next batch, which has begun by then.
"""

from collections.abc import Callable
from typing import Any

import torch

from tsctl.handlers.requests.gpu_copies import Coming, begin

Answer = Callable[[Any], torch.Tensor]  # makes of a model's output what its answers need; the first dimension is rows
_COMING = "tsctl_coming"  # of the output's first tensor


class WholeCalls:
    """A model whose call may begin with an image's pixels, and end with the answers.

    Attributes:
        takes_pixels: whether it normalises them itself.
        answers: made of the output of the latest call; None where that has not made them.
    """

    takes_pixels: bool = False
    answers: torch.Tensor | None = None


def takes_pixels(model: Any) -> bool:
    return isinstance(model, WholeCalls) and model.takes_pixels


def early_answer(handler: Any) -> Answer | None:
    """Return what makes the answers of a handler whose stages are ours, on a GPU; None for any other."""
    answer: Answer | None = getattr(handler, "answers_of", None)
    return answer if answer is not None and getattr(handler, "answers_early", False) else None


def send(model: Any, output: Any, answer: Answer) -> None:
    """Start the copy of the answers to the model's latest output, which remembers it."""
    made = model.answers if isinstance(model, WholeCalls) else None
    setattr(_first(output), _COMING, begin(answer(output) if made is None else made))


def coming_of(output: Any, answer: Answer) -> Coming:
    """Return the copy of the answers to an output, which starts now unless it was `send`."""
    coming: Coming | None = getattr(_first(output), _COMING, None)
    return begin(answer(output)) if coming is None else coming


def _first(output: Any) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else next(iter(output.values()))
