"""Answers with the environment variables that the request names, and with its row's type."""

import json
import os


class Surroundings:
    def initialize(self, context):
        self.limited = context.system_properties["limit_max_image_pixels"]

    def handle(self, data, context):
        return [self.answer(value) for value in data]  # with the envelope `body` there is no dict around it

    def answer(self, body):
        names = json.loads(body if isinstance(body, bytearray) else json.dumps(body))
        return {
            "type": type(body).__name__,
            "limited": self.limited,
            "environment": {name: os.environ.get(name) for name in names},
        }
