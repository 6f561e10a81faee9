"""What `python -m tests.lab` runs for Ray."""

from tests.lab.programs import Program

_NEEDS = (".venv/.ray-installed",)
PROGRAMS = {
    "ray": Program(
        "models on Ray clusters of this machine whose nodes are killed; 1 GB of memory",
        ('pytest -m ray "$@" tests/extensions/ray',),
        _NEEDS,
    ),
    "chaos-ray": Program(
        "kills processes, actors, nodes and bridges of a daemon on a Ray cluster of this machine, replaces its "
        "models, and upgrades it, under load; ten minutes, or --seconds 60 --seed 7",
        ('python -m tests.extensions.ray.chaos "$@"',),
        _NEEDS,
    ),
}
