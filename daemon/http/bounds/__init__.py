"""Budgets that all connections share, a connection's part in them, and the answer to a connection too many."""
