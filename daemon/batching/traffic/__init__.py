"""Statistics of one model version's traffic: how long batches take, and when the next job arrives."""
