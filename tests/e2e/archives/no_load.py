"""A handler that cannot load its model."""


class Handler:
    def initialize(self, context):
        self.load(context.system_properties["model_dir"])

    def load(self, directory):
        raise FileNotFoundError("the vocabulary is missing")

    def handle(self, data, context):
        return data
