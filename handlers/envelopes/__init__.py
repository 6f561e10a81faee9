"""Request envelopes: the formats in which platforms wrap the rows of a request and expect the response."""
