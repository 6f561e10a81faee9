"""The last minutes of versions at the command line: `tsctl top` and the page begin with them."""

from collections.abc import Callable, Mapping, Sequence

from tsctl.extension import CommandLine, Document, PastRate


class HistoryCommandLine(CommandLine):
    documents = {"history": frozenset({"model"})}  # noqa: RUF012 - as the class above has it

    def past(self, ask: Callable[[str], Document]) -> Mapping[tuple[str, str], Sequence[PastRate]]:
        return {
            (each["name"], each["version"]): [*map(PastRate, each["time"], each["requestsPerSecond"])]
            for each in ask("/tsctl/history")["models"]
        }


COMMAND_LINE = HistoryCommandLine()
