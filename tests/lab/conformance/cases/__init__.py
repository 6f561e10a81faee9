"""All cases, in groups; the groups of a variant are put to a server of theirs, in this order."""

from collections.abc import Collection, Iterator
from itertools import groupby

from tests.lab.conformance.case import Group
from tests.lab.conformance.cases import (  # fmt: skip
    bodies,
    builtin,
    envelopes,
    errors,
    features,
    managing,
    registering,
    results,
    routes,
    settings,
    together,
)
from tests.lab.conformance.variants import Variant

GROUPS: tuple[Group, ...] = (
    bodies.GROUP,
    results.GROUP,
    errors.GROUP,
    routes.GROUP,
    builtin.GROUP,
    features.EXPLAINING,
    features.KSERVE,
    features.FEATURES,
    managing.SCALING,
    managing.LISTING,
    registering.GROUP,
    registering.ARCHIVES,
    together.GROUP,
    envelopes.BODY,
    envelopes.JSON,
    envelopes.KSERVE,
    envelopes.KSERVEV2,
    settings.SECURED,
    settings.CONFIGURATION,
    settings.MEASURED,
    settings.DECLARING,
)


def by_variant(names: Collection[str]) -> Iterator[tuple[Variant, list[Group]]]:
    """The groups of these names, by how the servers are set for them."""
    wanted = (group for group in GROUPS if group.name in names)
    for variant, groups in groupby(wanted, key=lambda group: group.variant):
        yield variant, list(groups)
