"""Request envelopes: what platforms wrap around the rows of a request, and want around its answer."""
