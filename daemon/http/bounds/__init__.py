"""Budgets that all connections share, and the answer to a connection too many."""
