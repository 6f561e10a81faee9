"""A handler with a missing dependency."""

import a_library_that_is_not_installed  # noqa: F401


class Handler:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return data
