"""MicroBatching in the place of `handle`, set up from model-config.yaml."""

import threading

from ts.handler_utils.micro_batching import MicroBatching
from ts.torch_handler.base_handler import BaseHandler


class MicroBatched(BaseHandler):
    def __init__(self):
        super().__init__()
        self.handle = MicroBatching(self)
        self.sizes = []

    def initialize(self, ctx):
        super().initialize(ctx)
        config = ctx.model_yaml_config["micro_batching"]
        self.handle.parallelism = config["parallelism"]
        self.handle.micro_batch_size = config["micro_batch_size"]

    def postprocess(self, data):
        thread = threading.current_thread() is not threading.main_thread()
        return [{"scores": row, "rows": len(data), "in_thread": thread} for row in data.tolist()]
