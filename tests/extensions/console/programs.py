"""What `python -m tests.lab` runs for the console."""

from tests.lab.programs import Program

PROGRAMS = {
    "screens": Program(
        "the pictures of `tsctl console` that docs/guides/console.md shows; two minutes",
        ("python -m tests.extensions.console.browser.screens",),
        (".venv/.browser-installed",),
    ),
}
