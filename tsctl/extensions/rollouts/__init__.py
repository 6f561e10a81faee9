"""Rollouts at the command line: three verbs; their progress and evidence where versions are shown."""

from collections.abc import Mapping, Sequence

from tsctl.extension import CommandLine, Document, Styled


class RolloutsCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {
        "rollout": ("Models", "Let a new version take over step by step."),
        "promote": ("Models", "End a rollout: the new version answers."),
        "abort": ("Models", "End a rollout: the versions before answer."),
    }
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "rollout": (
            ("Let version 2.0 take over", "tsctl rollout scorer/2.0 --steps 1,10,50,100 --every 2m"),
            ("See how far it is", "tsctl rollout scorer"),
        ),
        "promote": (
            ("Give the new version all requests", "tsctl promote scorer"),
            ("Then unregister the version before", "tsctl promote scorer && tsctl unregister scorer/1.0"),
        ),
        "abort": (
            ("Go back to the versions before", "tsctl abort scorer"),
            ("See why it has ended", "tsctl abort scorer && tsctl rollout scorer"),
        ),
    }

    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        if "rollout" not in document:
            return ()
        rollout = document["rollout"]
        return [("rollout", f"of {rollout['version']}: {rollout['state']}, at {rollout['share']:g} %")]

    def under_way(self, document: Document) -> Sequence[tuple[str, str]]:
        return [("rollout", document["rollout"])] if "rollout" in document else ()

    def evidence(self, document: Document) -> Sequence[Styled]:
        from tsctl.extensions.rollouts.evidence import evidence_lines, rollout_heading

        rollout = document.get("evidence")
        if rollout is None:
            return ()
        heading = Styled(f"rollout: {rollout_heading(rollout)}", "red" if rollout["state"] == "aborted" else "")
        return [heading, *(Styled(f"  {line}") for line in evidence_lines(rollout))]


COMMAND_LINE = RolloutsCommandLine()
