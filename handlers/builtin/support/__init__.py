"""Shared parts of the built-in handlers: model files, labels, texts, images, explanations."""
