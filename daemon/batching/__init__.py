"""Decide when a job is dispatched, and together with which others."""
