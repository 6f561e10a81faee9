"""Answers with what it finds: the files of its archive, its manifest, and its model-config.yaml."""

import os


class Lists:
    def initialize(self, context):
        self.folder = context.system_properties["model_dir"]
        self.context = context

    def handle(self, data, context):
        files = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if not name.endswith(".pyc"):
                    files[os.path.relpath(path, self.folder)] = os.path.getsize(path)
        return [{"files": files, "manifest": context.manifest, "config": context.model_yaml_config} for _ in data]
