"""Bytes to requests: heads, bodies, and refusals of requests that are not complete yet."""
