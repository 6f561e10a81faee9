"""Texts of handlers and clients, made so that any encoder takes them."""
