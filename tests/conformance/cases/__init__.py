"""All cases, in groups; groups are put to a server in this order."""

from tests.conformance.case import Group
from tests.conformance.cases import bodies

GROUPS: tuple[Group, ...] = (bodies.GROUP,)
