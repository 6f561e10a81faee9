"""How models are spread, in their documents."""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.ranks.parallel import parallel_of
from tsctl.daemon.models.version import ModelVersion


class RanksService(Service):
    def members(self, model: ModelVersion) -> Mapping[str, Any]:
        parallel = parallel_of(model.settings)
        return {"parallelType": parallel.kind, "parallelLevel": parallel.level} if parallel.kind else {}
