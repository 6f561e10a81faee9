"""A handler whose import fails."""

import a_package_that_is_not_installed  # noqa: F401


def handle(data, context):
    return data
