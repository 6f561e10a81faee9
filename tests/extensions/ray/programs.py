"""What `python -m tests.lab` runs for Ray."""

from tests.lab.programs import Program

PROGRAMS = {
    "ray": Program(
        "models on Ray clusters of this machine whose nodes are killed; 1 GB of memory",
        ('pytest -m ray "$@" tests/extensions/ray',),
        (".venv/.ray-installed",),
    ),
}
