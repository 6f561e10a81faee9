"""Rollouts: a new version takes over step by step, judged by its own metrics, and goes back by itself."""
