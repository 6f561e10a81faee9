"""A class: answers with what it was given, types and contents, and what its context tells of the request."""


def shown(value):
    if isinstance(value, (bytes, bytearray)):
        return {type(value).__name__: value.decode("latin-1")}
    return {type(value).__name__: value}


class Shows:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        for index in range(len(data)):
            context.set_response_content_type(index, "application/json")
        return [
            {
                "row": {name: shown(value) for name, value in row.items()},
                "headers": context.get_all_request_header(index),
            }
            for index, row in enumerate(data)
        ]
