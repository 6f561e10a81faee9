"""What is measured for real: batches of the model in throw-away workers, and a request's way through a daemon."""
