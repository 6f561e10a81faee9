"""Batches that fit into memory, at the command line: what `tsctl describe` tells of a cap."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document


class FittingCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        cap = document["batching"].get("cap")
        if cap is None:
            return ()
        from tsctl.render import duration_text

        again = duration_text(cap["triedInSeconds"])
        text = f"at most {cap['most']} requests: {cap['tooLarge']} did not fit into memory; more are tried in {again}"
        return [("batch cap", text)]


COMMAND_LINE = FittingCommandLine()
