"""How the two servers are set for a group of cases: the same config.properties, read by both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_REQUEST = 1_000_000  # bytes
_METRICS_FILE = Path(__file__).parent / "archives" / "metrics.yaml"
_COMMON = {
    "max_request_size": str(MAX_REQUEST),
    "number_of_netty_threads": "2",
    "job_queue_size": "100",
    "disable_system_metrics": "true",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of setting them.

    Attributes:
        properties: further keys of config.properties.
        tokens: both ask for tokens; a case writes `<inference token>` and `<management token>` for them.
    """

    name: str = "plain"
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    tokens: bool = False

    def config(self, **further: object) -> str:
        """The text of config.properties, with the addresses and ports of one server."""
        return "".join(f"{key}={value}\n" for key, value in (_COMMON | further | dict(self.properties)).items())


PLAIN = Variant()
ENVELOPES = {
    name: Variant(f"envelope {name}", {"service_envelope": name}) for name in ("body", "json", "kserve", "kservev2")
}
TOKENS = Variant("tokens", tokens=True)
METRICS = Variant("metrics", {"metrics_mode": "prometheus"})
DECLARED = Variant("declared", {"metrics_mode": "prometheus", "metrics_config": str(_METRICS_FILE)})
CONFIGURED = Variant(
    "configured",
    {
        "max_request_size": "2000",
        "default_response_timeout": "17",
        "default_startup_timeout": "60",
        "default_workers_per_model": "1",
        "default_service_handler": "entry.py:infer",
        "decode_input_request": "false",
        "job_queue_size": "9",
        "load_models": "entry.mar,second=shows.mar",
        "models": (
            '{"entry": {"1.0": {"defaultVersion": true, "marName": "entry.mar", "minWorkers": 1, "maxWorkers": 2,'
            ' "batchSize": 3, "maxBatchDelay": 20, "responseTimeout": 11}}}'
        ),
    },
)
VARIANTS = {each.name: each for each in (PLAIN, *ENVELOPES.values(), TOKENS, METRICS, DECLARED, CONFIGURED)}
