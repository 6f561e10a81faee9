"""Optimisations at the command line: a verb, and their outcomes and trials where versions are shown.

outcomes    lines about what became of each optimisation, and of a trial
optimize    the verb, which runs a process; table prints what that has found
"""

from collections.abc import Mapping, Sequence

from tsctl.extension import CommandLine, Document, Section


class OptimizingCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {"optimize": ("Models", "Try optimizations of a model, and apply one.")}
    synonyms: Mapping[str, str] = dict.fromkeys(("optimise", "quantize", "compile"), "optimize")
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "optimize": (
            ("See what each optimization would gain here", "tsctl optimize resnet"),
            ("Serve with bfloat16, without measuring", "tsctl optimize resnet --apply bf16"),
        ),
    }

    def sections(self, document: Document, now: float) -> Sequence[Section]:
        from tsctl.extensions.optimizing.outcomes import COLUMNS, row_of, trial_lines

        rows = [row_of(each) for each in document.get("optimize", ())]
        return [Section("Optimizations" if rows else "", COLUMNS, rows, trial_lines(document.get("trial"), now))]

    def checked(self, document: Document) -> Sequence[tuple[str, str]]:
        from tsctl.extensions.optimizing.outcomes import coming_trial, line_of

        lines = [*map(line_of, document.get("optimize", ())), *coming_trial(document.get("trial"))]
        return [("optimize", line) for line in lines]


COMMAND_LINE = OptimizingCommandLine()
