"""The route of a model in a file: how requests that name no version are shared among its versions.

route: {"1.0": 90, "2.0": 10}             weights
route:
  weights: {"1.0": 90, "2.0": 10}
  sticky: header:x-session-id             or ip: a client stays at its version
  shadow: "3.0"                           gets copies of requests, and its answers are dropped
  sample: 5%                              the share that is copied; all by default
  allowEffects: true                      also where the shadow is not declared repeatable
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.extensions.apply.node import FileNode

_KEYS = ("weights", "sticky", "shadow", "sample", "allowEffects")
_MOST_WEIGHT = 1e6
_SESSION = "header:x-session-id"  # of `sticky: header`


def read_route(node: FileNode, versions: Sequence[str]) -> dict[str, Any]:
    """Return a route by the names of the daemon's parameters.

    Raises:
        CliError: a key is unknown, a value is impossible, or a version is none of the model's.
    """
    members = node.mapping()
    if "weights" not in members:
        return {"weights": _weights(node, versions)}
    members = node.mapping(_KEYS)
    route: dict[str, Any] = {"weights": _weights(members["weights"], versions)}
    if "sticky" in members:
        route["sticky"] = members["sticky"].read(_sticky)
    if "shadow" not in members:
        for key in ("sample", "allowEffects"):
            if key in members:
                raise members[key].error("there is no shadow", "add `shadow`, or remove the line")
        return route
    shadow = members["shadow"].text()
    if shadow not in versions or shadow in route["weights"]:
        raise members["shadow"].error(
            f"`{shadow}` is no version of the model without a weight", f"name one of {', '.join(versions)}"
        )
    sample = members["sample"].read(_share) if "sample" in members else 1.0
    allowed = members["allowEffects"].read(_boolean) if "allowEffects" in members else False
    return route | {"shadow": shadow, "sample": sample, "allow_effects": allowed}


def written_route(route: Mapping[str, Any]) -> dict[str, Any]:
    """Return a route as a file names it."""
    if route.keys() == {"weights"}:
        return dict(route["weights"])
    return {"allowEffects" if key == "allow_effects" else key: value for key, value in route.items()}


def _weights(node: FileNode, versions: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for version, member in node.mapping(versions).items():
        if weight := member.read(_weight):
            found[version] = weight
    if not found:
        raise node.error("no version has a weight", 'write `route: {"1.0": 90, "2.0": 10}`')
    return found


def _weight(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _MOST_WEIGHT:
        raise ValueError(f"a number from 0 to {_MOST_WEIGHT:.0f}")
    return float(value)


def _sticky(value: Any) -> str:
    text = str(value).strip().lower()
    if text == "header":
        return _SESSION
    if text != "ip" and not (text.startswith("header:") and len(text) > len("header:")):
        raise ValueError("ip, header, or header:NAME")
    return text


def _share(value: Any) -> float:
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError("a share such as 5% or 0.05")
    return share


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value
