"""The verdict at the command line: a row of `tsctl describe`."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document


class VerdictCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        sentence = document.get("verdict")
        return [("verdict", sentence)] if sentence else ()


COMMAND_LINE = VerdictCommandLine()
