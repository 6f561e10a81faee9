"""Models in memory and out of it, at the command line: since when, why, what they take, and the budget of all."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document, Styled


class ResidencyCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        from tsctl.extensions.residency.text import comes_and_goes, load_facts, memory_facts, residence_facts

        residence = document.get("residence")
        if residence is None or not comes_and_goes(residence):
            return ()
        rows = (
            ("memory", residence_facts(residence, now)), ("", memory_facts(residence)), ("", load_facts(residence)),
        )  # fmt: skip
        return [(title, ", ".join(facts)) for title, facts in rows if facts]

    def state(self, document: Document, now: float) -> Sequence[Styled]:
        from tsctl.extensions.residency.text import comes_and_goes, memory_facts, residence_facts

        residence = document.get("residence")
        if residence is None or not comes_and_goes(residence):
            return ()
        return [Styled(", ".join([*residence_facts(residence, now), *memory_facts(residence)]))]

    def absence(self, document: Document) -> str:
        from tsctl.extensions.residency.text import short_state

        return short_state(document.get("residence"))

    def overview(self, document: Document) -> Sequence[str]:
        from tsctl.extensions.residency.text import budget_facts

        return budget_facts(document.get("memory"))


COMMAND_LINE = ResidencyCommandLine()
