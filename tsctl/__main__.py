"""`python -m tsctl`: the command line, where the folder of its script is not on the PATH."""

from tsctl.cli import main

main(prog_name="tsctl")
