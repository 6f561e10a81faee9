"""Autoscaling at the command line: the range of workers, and the state of the rule, where versions are shown."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document, Styled, TopColumn


def range_text(document: Document) -> str:
    """Return the range of an autoscaled version's workers, `-` for a fixed number."""
    scaling = document.get("autoscaling")
    return "-" if scaling is None else f"{scaling['minWorkers']}-{scaling['maxWorkers']}"


class ScalingCommandLine(CommandLine):
    columns = (
        TopColumn(
            "RANGE", 5, range_text, lambda document: bool(document.get("autoscaling")), beside="READY", outlives="CPU"
        ),
    )

    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        return [("autoscaling", each.text) for each in _state(document, now)]

    def state(self, document: Document, now: float) -> Sequence[Styled]:
        return [Styled(f"autoscaling: {each.text}", each.style) for each in _state(document, now)]


def _state(document: Document, now: float) -> Sequence[Styled]:
    """Return the state of a version's autoscaling in words; none for a fixed number of workers."""
    from tsctl.render import duration_text

    scaling = document.get("autoscaling")
    if scaling is None:
        return ()
    wait = scaling["predictedWaitMs"]
    said = [
        f"{scaling['minWorkers']} to {scaling['maxWorkers']} workers",
        f"target {scaling['targetQueueMs']:g} ms",
        "no decision yet" if wait is None else f"predicted wait {wait:.0f} ms",
    ]
    if scaling["blocked"]:
        said.append(scaling["reason"].rpartition(", but ")[2])
    elif scaling["quietSeconds"] is not None:
        said.append(f"quiet for {scaling['quietSeconds']:.0f} of {scaling['takenAwayAfter']:.0f} s")
    change = scaling["lastChange"]
    if change is not None:
        ago = duration_text(max(0.0, now - change["at"]))
        said.append(f"from {change['before']} to {change['after']} {ago} ago ({change['reason']})")
    return [Styled(", ".join(said), "yellow" if scaling["blocked"] else "")]


COMMAND_LINE = ScalingCommandLine()
