"""Run the daemon under faults drawn from seeds, on a virtual clock.

    python -m tests.lab simulate-faults, or python -m tests.lab.simulation [--seeds 1000] [--first 1] [--seed N]

Seeds up to 100 000 run whole batches, later ones all modes (modes.py).
"""

import sys

from tests.lab.harness import seeds
from tests.lab.simulation.run import explain, prepare, run


def main(arguments: list[str]) -> int:
    return seeds.main("tests.lab.simulation", arguments, run, explain, seeds=1000, prepare=prepare)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
