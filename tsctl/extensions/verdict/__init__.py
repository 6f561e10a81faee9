"""The verdict at the command line: a row of `tsctl describe`, a line of a version's own screen of `tsctl top`."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document, Styled


class VerdictCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        sentence = document.get("verdict")
        return [("verdict", sentence)] if sentence else ()

    def state(self, document: Document, now: float) -> Sequence[Styled]:
        del now
        sentence = document.get("verdict")
        if not sentence:
            return ()
        return [Styled(sentence, "yellow" if "`" in sentence else "")]  # with a command: something is to be done


COMMAND_LINE = VerdictCommandLine()
