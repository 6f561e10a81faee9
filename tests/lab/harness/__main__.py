"""Run a scenario: `python -m tests.lab.harness SCENARIO [OPTIONS]`; without one, list them."""

import importlib
import sys

SCENARIOS = {
    "simulation": "tests.lab.simulation.__main__",
    "lives": "tests.lab.lives.__main__",
    "chaos": "tests.lab.chaos.__main__",
    "chaos-rows": "tests.lab.chaos.rows",
    "chaos-residency": "tests.lab.chaos.residency",
    "chaos-steered": "tests.lab.chaos.steered.__main__",
    "chaos-ray": "tests.lab.chaos.ray",
    "upgrades": "tests.lab.chaos.upgrades",
    "kills": "tests.lab.chaos.kills",
    "history": "tests.lab.history.__main__",
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in SCENARIOS:
        for name, module in SCENARIOS.items():
            print(f"{name:16} {(importlib.import_module(module).__doc__ or '').partition(chr(10))[0]}")
        return 2 if arguments else 0
    return int(importlib.import_module(SCENARIOS[arguments[0]]).main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
