"""Grouping by length at the command line: what `tsctl describe` tells of it."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document


class GroupingCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        batching = document["batching"]
        if not batching.get("groupByLength"):
            return ()
        padding = batching.get("padding")
        why = "" if padding is None else f": padding took {padding:.0%} of the time (learned)"
        return [("batches", f"of similar lengths{why}")]


COMMAND_LINE = GroupingCommandLine()
