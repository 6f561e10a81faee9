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
    from tsctl.extensions.scaling.text import autoscaling_text

    scaling = document.get("autoscaling")
    if scaling is None:
        return ()
    return [Styled(autoscaling_text(scaling, now), "yellow" if scaling["blocked"] else "")]


COMMAND_LINE = ScalingCommandLine()
