"""Shadows: versions that get copies of a model's requests, and whose answers are compared and dropped."""
