"""Handlers that are loaded and optimised as in a worker."""

from pathlib import Path
from typing import Any

from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.optimize.apply import optimize


def loaded(
    model_dir: Path, entry: dict[str, str], handler_class: type[BaseHandler] = ImageClassifier, **config: Any
) -> BaseHandler:
    handler = handler_class()
    handler.initialize(context_of(model_dir, entry, config))
    return handler


def done(
    handler: BaseHandler, *asked: str, model_dir: Path | None = None, batch_size: int = 2
) -> dict[str, wire.Optimized]:
    where = model_dir or Path(handler.context.system_properties["model_dir"])
    reports = optimize(handler, asked or None, where, handler.model_yaml_config, batch_size)
    return {report.name: report for report in reports}


def answer(handler: BaseHandler) -> dict[str, float]:
    assert handler.context is not None
    result: dict[str, float] = handler.handle([{"body": example_image()}], handler.context)[0]
    return result
