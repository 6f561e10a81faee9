"""One file, two versions: the greeting is in the archive's model-config.yaml."""


class Greeter:
    def initialize(self, context):
        self.greeting = context.model_yaml_config["greeting"]

    def handle(self, data, context):
        return [f"{self.greeting}, {row['body']}!\n" for row in data]
