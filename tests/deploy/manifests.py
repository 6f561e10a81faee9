"""The manifests of docs/deploy, and the containers that KServe makes of them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"
_PLACEHOLDER = re.compile(r"\{\{ *\.([A-Za-z.]+) *\}\}")
_ENVELOPES = {"v1": "kserve", "v2": "kservev2", "grpc-v2": "kservev2"}


class KServeContainer(NamedTuple):
    """What the cluster starts: words and variables."""

    args: list[str]
    environment: dict[str, str]


def documents(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def files() -> list[Path]:
    """Return the files with manifests of Kubernetes: those of Docker's compose are others."""
    return sorted(path for path in FOLDER.rglob("*.yaml") if "compose" not in path.parts)


def expand(container: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the placeholders of a container with an InferenceService's metadata, as KServe does over the JSON.

    A label that is not there becomes `<no value>`, as in Go's templates.
    """

    def value_of(match: re.Match[str]) -> str:
        value: Any = {"Name": metadata.get("name"), "Namespace": metadata.get("namespace"),
                      "Labels": metadata.get("labels", {})}  # fmt: skip
        for name in match[1].split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return "<no value>" if value is None else str(value)

    filled: dict[str, Any] = json.loads(_PLACEHOLDER.sub(value_of, json.dumps(container)))
    return filled


def start_of(runtime: Mapping[str, Any], service: Mapping[str, Any], protocol: str | None) -> KServeContainer:
    """Return the container of a service on a runtime.

    KServe adds the service's arguments to the runtime's, and gives a service of the server type `torchserve` a label
    and a variable.

    Args:
        protocol: None for a KServe that adds nothing.
    """
    metadata = dict(service["metadata"])
    model = service["spec"]["predictor"]["model"]
    environment = {each["name"]: each["value"] for each in model.get("env", ())}
    if protocol is not None:
        metadata["labels"] = {**metadata.get("labels", {}), "serviceEnvelope": _ENVELOPES[protocol]}
        environment["PROTOCOL_VERSION"] = protocol
    container = expand(runtime["spec"]["containers"][0], metadata)
    variables = {each["name"]: each["value"] for each in container.get("env", ())}
    return KServeContainer([*container["args"], *model.get("args", ())], variables | environment)
