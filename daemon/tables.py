"""The tables of the daemon: the core's rows, and then those of the extensions, in the order of their list.

Everything that shows, checks or documents rows reads them here. Standard library only: the command line imports this
module.
"""

from collections.abc import Mapping

from tsctl.daemon.declarations import ClientProtocol, Operations
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.model_settings.table import CORE_MODEL_SETTINGS
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.setting_values import Setting
from tsctl.daemon.settings import CORE_SETTINGS

CORE_REASONS: dict[str, str] = {  # for which batches are sent, and their meanings
    "full": "there were enough requests for a whole batch",
    "half": "half of the clients: the others' requests run while these are answered",
    "probe": "another number of requests, to learn which has the best rate",
    "delay": "a request had been held for the maximum delay",
    "deadline": "a request would otherwise be answered too late",
    "stopping": "the version is being shut down",
    "nobody_left": "all clients that could join were already waiting",
    "no_gain": "waiting would have cost more than it saved",
    "split": "a share of what waited: the other workers, idle or soon idle, get the rest",
    "ahead": "sent to a worker that was still busy with the batch before",
    "at_once": "the policy does not wait",
    "place": "a worker that runs requests on their own had a free place",
    "retry": "a request whose worker died or hung, alone",
    "solo": "a request for the handler's description, alone",
}


SETTINGS: tuple[Setting, ...] = (
    *CORE_SETTINGS, *(row for extension in EXTENSIONS for row in extension.settings)
)  # fmt: skip
MODEL_SETTINGS: tuple[ModelSetting, ...] = (
    *CORE_MODEL_SETTINGS, *(row for extension in EXTENSIONS for row in extension.model_settings)
)  # fmt: skip
BATCH_REASONS: dict[str, str] = CORE_REASONS | {
    name: meaning for extension in EXTENSIONS for name, meaning in extension.batch_reasons
}
PROTOCOLS: tuple[ClientProtocol, ...] = tuple(each.protocol for each in EXTENSIONS if each.protocol is not None)


def operations_of_extensions(*, own: bool) -> list[Operations]:
    """Return each extension's routes as OpenAPI describes them: for managers, or those of the control socket."""
    return [each.operations(own=own) for each in EXTENSIONS]


LARGEST_ALONE = 8  # requests of a batch: larger sizes share the bars of a histogram, so that it fits on the screen


def size_bars(sizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return histogram bars of batch sizes: one for each up to 8, then 9-16, 17-32 and so on, as far as there are any.

    A size that is alone in its range has its own name.
    """
    ranges: dict[tuple[int, int], dict[int, int]] = {}
    for size, count in sorted((int(size), count) for size, count in sizes.items()):
        low = high = size
        if size > LARGEST_ALONE:
            high = 1 << (size - 1).bit_length()
            low = high // 2 + 1
        ranges.setdefault((low, high), {})[size] = count
    return [
        (f"{low}-{high}" if len(found) > 1 else str(*found), sum(found.values()))
        for (low, high), found in ranges.items()
    ]
