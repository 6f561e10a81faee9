"""Bytes to requests, answers to bytes: HTTP/1.1 without knowing what is asked."""
