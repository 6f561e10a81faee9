"""What one model version's traffic teaches: how long batches take, and when the next job comes."""
