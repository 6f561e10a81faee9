"""Run a sample before the worker is ready, so that the first client does not pay for the first batch.

warmup: sample.jpg                  a file of the archive, in batches of 1 and of the batch size
warmup:
  file: sample.json
  contentType: application/json     none by default, as with `curl -T`
  batchSizes: [1, 4, 8]
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handlers import wire
from handlers.errors import HandlerError
from handlers.runtime import Runtime


def warm_up(runtime: Runtime, load: wire.Load, config: Mapping[str, Any]) -> int:
    """Run the sample that `model-config.yaml` names.

    Returns:
        How many batches were run; 0 if none is named.

    Raises:
        HandlerError: the sample is not there, or the handler fails on it.
    """
    wanted = config.get("warmup")
    if not wanted:
        return 0
    options = {"file": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(options, dict) or not isinstance(options.get("file"), str):
        raise HandlerError(f"model-config.yaml: `warmup` is {wanted!r}, and should name a file of the archive")
    file = Path(load.model_dir) / Path(options["file"]).name
    if not file.is_file():
        raise HandlerError(f"model-config.yaml: `warmup` names `{options['file']}`, and the archive does not hold it")
    sizes = options.get("batchSizes") or sorted({1, load.batch_size})
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 1 for size in sizes):
        raise HandlerError(f"model-config.yaml: `batchSizes` of `warmup` is {sizes!r}, and should be a list of sizes")
    body, kind = file.read_bytes(), str(options.get("contentType") or "")
    headers = [("url_path", ""), ("explain", "False")]
    for size in sizes:
        rows = [wire.Row(f"warm-up-{number}", headers, [("body", kind, body)]) for number in range(size)]
        for answer in runtime.run(rows):
            if answer.error:
                message = bytes(answer.body).decode("utf-8", "replace")
                raise HandlerError(f"the warm-up with `{file.name}` failed: {message}")
    return len(sizes)
