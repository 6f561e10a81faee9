"""Real measurements: batches of the model in throw-away workers, and a request's way through a daemon."""
