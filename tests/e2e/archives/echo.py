"""Answers with what it was given: types and contents of the row, headers, and the size of its batch."""


def shown(value):
    if isinstance(value, bytearray):
        return {"bytearray": value.decode("latin-1")}
    return {type(value).__name__: value}


class Echo:
    def initialize(self, context):
        print("echo is loaded", context.model_name)

    def handle(self, data, context):
        return [
            {
                "row": {name: shown(value) for name, value in row.items()},
                "headers": context.get_all_request_header(index),
                "rows": len(data),
                "id": context.get_request_id(index),
            }
            for index, row in enumerate(data)
        ]
