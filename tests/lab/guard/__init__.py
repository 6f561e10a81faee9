"""The guard of a request's cost: the daemon's processor time for a constant answer, beside the last release's."""
