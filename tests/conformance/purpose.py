"""What is different on purpose, and why. A defect of ours is never put here.

Each rule looks at both values, so that nothing else can hide behind it; the page lists the reasons.
"""

from tests.conformance.compare import Purpose

PURPOSES: tuple[Purpose, ...] = ()
