"""A version with a quarantine, for scenarios."""

from tests.extensions.quarantine.poisoned import PoisonedVersion

bench = PoisonedVersion
