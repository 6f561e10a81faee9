"""All cases, in groups; groups are put to a server in this order."""

from tests.conformance.case import Group
from tests.conformance.cases import bodies, builtin, errors, features, managing, registering, results, routes, together

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
)
