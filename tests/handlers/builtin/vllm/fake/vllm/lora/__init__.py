"""Adapters of the fake."""
