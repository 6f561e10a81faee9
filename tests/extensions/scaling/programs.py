"""What `python -m tests.lab` runs for scaling."""

from tests.lab.programs import Program

PROGRAMS = {
    "simulate-scaling": Program(
        "the rule for the number of workers beside fixed numbers, on a virtual clock; writes docs/guides/scaling.md",
        ('python -m tests.extensions.scaling.simulation --markdown docs/guides/scaling.md "$@"',),
    )
}
