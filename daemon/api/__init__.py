"""The routes of the HTTP APIs, and the documents that answer them."""
