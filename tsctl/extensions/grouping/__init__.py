"""Grouping by length at the command line: what `tsctl describe` and a version's screen of `tsctl top` tell of it."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document, Styled


class GroupingCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        text = _grouped(document["batching"])
        return [("batches", text)] if text else ()

    def state(self, document: Document, now: float) -> Sequence[Styled]:
        del now
        text = _grouped(document)
        return [Styled(f"batches {text}", "")] if text else ()


def _grouped(batching: Document) -> str:
    """Return how batches are formed, and why; empty where that is by age."""
    if not batching.get("groupByLength"):
        return ""
    padding = batching.get("padding")
    return "of similar lengths" + ("" if padding is None else f": padding took {padding:.0%} of the time (learned)")


COMMAND_LINE = GroupingCommandLine()
