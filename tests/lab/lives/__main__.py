"""Let clients do what any client may in the life of a connection, on a virtual clock.

python -m tests.lab lives, or python -m tests.lab.lives [--seeds 10000] [--first 1] [--seed N]
"""

import sys

from tests.lab.harness import seeds
from tests.lab.lives.life import explain, run


def main(arguments: list[str]) -> int:
    return seeds.main("tests.lab.lives", arguments, run, explain, seeds=10_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
