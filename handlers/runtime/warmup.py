"""Run a sample before the worker is ready, so that the first client does not pay for the first batch.

warmup: sample.jpg                  a file of the archive, in batches of 1 and of the batch size; of several the first
warmup:
  file: sample.json
  contentType: application/json     none by default, as with `curl -T`
  batchSizes: [1, 4, 8]
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.requests.sample import sample_of
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import HandlerError


def warm_up(runtime: Runtime, load: wire.Load, config: Mapping[str, Any]) -> int:
    """Run the sample that `model-config.yaml` names.

    Returns:
        How many batches were run; 0 if no sample is named.

    Raises:
        HandlerError: the sample is missing, `batchSizes` is not a list of sizes, or the handler fails on the sample.
    """
    sample = sample_of(Path(load.model_dir), config)
    if sample is None:
        return 0
    chosen = config["warmup"].get("batchSizes") if isinstance(config["warmup"], dict) else None
    sizes = chosen or sorted({1, load.batch_size})
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 1 for size in sizes):
        raise HandlerError(f"model-config.yaml: `batchSizes` of `warmup` is {sizes!r}; expected a list of sizes")
    headers = [("url_path", ""), ("explain", "False")]
    for size in sizes:
        param = ("body", sample.content_type, sample.body)
        rows = [wire.Row(f"warm-up-{number}", headers, [param]) for number in range(size)]
        for answer in runtime.run(rows, isolate=False):  # a handler that cannot batch fails here
            if answer.error:
                message = bytes(answer.body).decode("utf-8", "replace")
                raise HandlerError(f"the warm-up with `{sample.name}` failed: {message}")
    return len(sizes)
