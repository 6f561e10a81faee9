"""A service object and a module function in front of it, as the oldest handlers are written."""

import json
import logging
import os

logger = logging.getLogger(__name__)


class WordCounter(object):
    def __init__(self):
        self.initialized = False
        self.stop_words = None
        self.loaded = 0

    def initialize(self, context):
        model_dir = context.system_properties.get("model_dir")
        with open(os.path.join(model_dir, "stop_words.json")) as f:
            self.stop_words = set(json.load(f))
        self.loaded += 1
        self.initialized = True
        logger.info("Loaded %d stop words of %s", len(self.stop_words), context.manifest["model"]["modelName"])

    def handle(self, data):
        texts = [(row.get("data") or row.get("body")).decode("utf-8") for row in data]
        return [{"words": sum(w not in self.stop_words for w in t.split()), "loaded": self.loaded} for t in texts]


_service = WordCounter()


def handle(data, context):
    try:
        if not _service.initialized:
            _service.initialize(context)

        if data is None:
            return None

        return _service.handle(data)
    except Exception as e:
        raise e
